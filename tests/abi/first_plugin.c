/* A plug-in as it could be written for the first page of ABI 1 (backend_abi1.h beside it, kept as it was), with the
 * smallest table and the fewest instructions. Every later rosin loads it and computes with it: ../abi_test.py. Nothing
 * in this folder is ever changed. The macros make tables that end elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "backend_abi1.h"

#ifndef TABLE_SIZE
#define TABLE_SIZE ROSIN_BACKEND_SMALLEST
#endif
#ifndef TABLE_ABI
#define TABLE_ABI ROSIN_BACKEND_ABI
#endif

struct rosin_device { int unused; };
struct rosin_stream { int unused; };
struct rosin_event { int unused; };
struct rosin_memory { char* bytes; };
struct rosin_kernel { char name[64]; int32_t group; uint32_t count; };
struct rosin_module { char* bytes; uint64_t count; };

enum { longest = 256 };
static const char magic[8] = "first 1";
static _Thread_local const char* last_error = "";

static rosin_status fail(rosin_status status, const char* why) {
  last_error = why;
  return status;
}
static const char* error_text(void) { return last_error; }

static rosin_status device_count(int32_t* count) {
  *count = 1;
  return ROSIN_OK;
}

static rosin_status device_info(int32_t device, rosin_device_info* info) {
  rosin_device_info all;
  if (device != 0) return fail(ROSIN_INVALID, "first: there is device 0 only");
  memset(&all, 0, sizeof all);
  all.size = info->size;
  strcpy(all.name, "First device");
  strcpy(all.target, "first");
  all.memory = all.largest_allocation = (uint64_t)1 << 30;
  all.kind = ROSIN_DEVICE_OTHER;
  all.language = ROSIN_LANGUAGE_NONE;
  all.largest_group = 256;
  all.shared_bytes = 16384;
  all.alignment = 16;
  memcpy(info, &all, info->size < sizeof all ? info->size : sizeof all);
  return ROSIN_OK;
}

static rosin_status new_bytes(uint64_t bytes, void** out) {
  void* made = malloc(bytes);
  if (!made) return fail(ROSIN_OUT_OF_MEMORY, "first: the host has no memory left");
  *out = made;
  return ROSIN_OK;
}

static rosin_status open_device(int32_t device, rosin_device** out) {
  return device == 0 ? new_bytes(sizeof **out, (void**)out) : fail(ROSIN_INVALID, "first: there is device 0 only");
}
static void close_device(rosin_device* device) { free(device); }
static rosin_status alloc(rosin_device* device, uint64_t bytes, rosin_memory** out) {
  rosin_memory* made;
  (void)device;
  if (bytes == 0) return fail(ROSIN_INVALID, "first: a block of 0 bytes");
  made = malloc(sizeof *made);
  if (made) made->bytes = malloc(bytes);
  if (!made || !made->bytes) {
    free(made);
    return fail(ROSIN_OUT_OF_MEMORY, "first: the host has no memory left");
  }
  *out = made;
  return ROSIN_OK;
}
static void release(rosin_device* device, rosin_memory* memory) {
  (void)device;
  free(memory->bytes);
  free(memory);
}
static rosin_status alloc_pinned(rosin_device* device, uint64_t bytes, void** out) {
  (void)device;
  return new_bytes(bytes, out);
}
static void release_pinned(rosin_device* device, void* memory) {
  (void)device;
  free(memory);
}

static rosin_status stream_create(rosin_device* device, rosin_stream** out) {
  (void)device;
  return new_bytes(sizeof **out, (void**)out);
}
static void stream_destroy(rosin_stream* stream) { free(stream); }
static rosin_status stream_sync(rosin_stream* stream) { return (void)stream, ROSIN_OK; }
static rosin_status event_create(rosin_device* device, rosin_event** out) {
  (void)device;
  return new_bytes(sizeof **out, (void**)out);
}
static void event_destroy(rosin_event* event) { free(event); }
static rosin_status event_record(rosin_event* event, rosin_stream* stream) {
  return (void)event, (void)stream, ROSIN_OK;
}
static rosin_status event_done(rosin_event* event) { return (void)event, ROSIN_OK; }
static rosin_status stream_wait(rosin_stream* stream, rosin_event* event) {
  return (void)event, (void)stream, ROSIN_OK;
}

static rosin_status copy_in(rosin_stream* stream, rosin_place to, const void* from, uint64_t bytes) {
  (void)stream;
  if (bytes) memcpy(to.memory->bytes + to.offset, from, bytes);
  return ROSIN_OK;
}
static rosin_status copy_out(rosin_stream* stream, void* to, rosin_place from, uint64_t bytes) {
  (void)stream;
  if (bytes) memcpy(to, from.memory->bytes + from.offset, bytes);
  return ROSIN_OK;
}
static rosin_status copy(rosin_stream* stream, rosin_place to, rosin_place from, uint64_t bytes) {
  return copy_in(stream, to, from.memory->bytes + from.offset, bytes);
}

static int knows(const rosin_instruction* in) {
  if (in->type != ROSIN_SCALAR_BOOL && in->type != ROSIN_SCALAR_INT32 && in->type != ROSIN_SCALAR_FLOAT32) return 0;
  switch (in->operation) {
    case ROSIN_LITERAL: case ROSIN_PARAMETER: case ROSIN_GROUP: case ROSIN_ITEM: case ROSIN_ADD: case ROSIN_MULTIPLY:
    case ROSIN_LESS: case ROSIN_LOAD: case ROSIN_STORE: case ROSIN_IF: case ROSIN_END_IF: return 1;
    default: return 0;
  }
}

static int knows_all(const rosin_kernel_code* code) {
  uint32_t i;
  if (code->shared_count || code->instruction_count > longest || strlen(code->name) >= 64) return 0;
  for (i = 0; i < code->buffer_count; ++i)
    if (code->buffers[i] != ROSIN_INT32 && code->buffers[i] != ROSIN_FLOAT32) return 0;
  for (i = 0; i < code->instruction_count; ++i)
    if (!knows(&code->instructions[i])) return 0;
  return 1;
}

static rosin_status compile(rosin_device* device, const char* target, const rosin_program* program, void** bytes,
                            uint64_t* count) {
  uint64_t total = sizeof magic;
  uint32_t k;
  char* at;
  void* made;
  (void)device, (void)target;
  for (k = 0; k < program->kernel_count; ++k) {
    if (!knows_all(&program->kernels[k])) return fail(ROSIN_UNSUPPORTED, "first: adds and multiplies only");
    total += sizeof(rosin_kernel) + program->kernels[k].instruction_count * sizeof(rosin_instruction);
  }
  if (new_bytes(total, &made) != ROSIN_OK) return ROSIN_OUT_OF_MEMORY;
  at = made;
  memcpy(at, magic, sizeof magic);
  at += sizeof magic;
  for (k = 0; k < program->kernel_count; ++k) {
    const rosin_kernel_code* code = &program->kernels[k];
    rosin_kernel head;
    memset(&head, 0, sizeof head);
    strcpy(head.name, code->name);
    head.group = code->group;
    head.count = code->instruction_count;
    memcpy(at, &head, sizeof head);
    memcpy(at + sizeof head, code->instructions, code->instruction_count * sizeof(rosin_instruction));
    at += sizeof head + code->instruction_count * sizeof(rosin_instruction);
  }
  *bytes = made;
  *count = total;
  return ROSIN_OK;
}
static void free_bytes(void* bytes) { free(bytes); }

static rosin_status load(rosin_device* device, const void* bytes, uint64_t count, rosin_module** out) {
  rosin_module* made;
  (void)device;
  if (count < sizeof magic || memcmp(bytes, magic, sizeof magic) != 0)
    return fail(ROSIN_INVALID, "first: these bytes are none of its programs");
  made = malloc(sizeof *made);
  if (made) made->bytes = malloc(count);
  if (!made || !made->bytes) {
    free(made);
    return fail(ROSIN_OUT_OF_MEMORY, "first: the host has no memory left");
  }
  made->count = count;
  memcpy(made->bytes, bytes, count);
  *out = made;
  return ROSIN_OK;
}
static void unload(rosin_module* module) {
  free(module->bytes);
  free(module);
}
static rosin_status kernel(rosin_module* module, const char* name, rosin_kernel** out) {
  uint64_t at = sizeof magic;
  while (at < module->count) {
    rosin_kernel* found = (rosin_kernel*)(module->bytes + at);
    if (strcmp(found->name, name) == 0) {
      *out = found;
      return ROSIN_OK;
    }
    at += sizeof *found + found->count * sizeof(rosin_instruction);
  }
  return fail(ROSIN_INVALID, "first: the module has no kernel of that name");
}

static void run(const rosin_kernel* kernel, const rosin_launch* launch, const uint32_t* group, int32_t item) {
  const rosin_instruction* code = (const rosin_instruction*)(kernel + 1);
  rosin_number v[longest];
  uint32_t i;
  memset(v, 0, sizeof v);
  for (i = 0; i < kernel->count; ++i) {
    const rosin_instruction* in = &code[i];
    const rosin_number x = v[in->operands[0]], y = v[in->operands[1]];
    const int real = code[in->operands[0]].type == ROSIN_SCALAR_FLOAT32;
    const int memory = in->operation == ROSIN_LOAD || in->operation == ROSIN_STORE;
    const rosin_place* place = memory ? &launch->buffers[in->immediate] : 0;
    char* element = memory ? place->memory->bytes + place->offset + (int64_t)4 * x.int32 : 0;
    int depth;
    switch (in->operation) {
      case ROSIN_LITERAL: v[i].int64 = in->immediate; break;
      case ROSIN_PARAMETER: v[i] = launch->parameters[in->immediate]; break;
      case ROSIN_GROUP: v[i].int32 = (int32_t)group[in->immediate]; break;
      case ROSIN_ITEM: v[i].int32 = item; break;
      case ROSIN_ADD:
        if (real) v[i].float32 = x.float32 + y.float32;
        else v[i].uint32 = x.uint32 + y.uint32;
        break;
      case ROSIN_MULTIPLY:
        if (real) v[i].float32 = x.float32 * y.float32;
        else v[i].uint32 = x.uint32 * y.uint32;
        break;
      case ROSIN_LESS: v[i].int32 = real ? x.float32 < y.float32 : x.int32 < y.int32; break;
      case ROSIN_LOAD: memcpy(&v[i], element, 4); break;
      case ROSIN_STORE: memcpy(element, &y, 4); break;
      case ROSIN_IF:
        for (depth = x.int32 ? 0 : 1; depth > 0;) {
          ++i;
          depth += (code[i].operation == ROSIN_IF) - (code[i].operation == ROSIN_END_IF);
        }
        break;
      default: break;
    }
  }
}

static rosin_status launch(rosin_stream* stream, rosin_kernel* kernel, const rosin_launch* launch) {
  uint32_t group[3];
  int32_t item;
  (void)stream;
  for (group[2] = 0; group[2] < launch->groups[2]; ++group[2])
    for (group[1] = 0; group[1] < launch->groups[1]; ++group[1])
      for (group[0] = 0; group[0] < launch->groups[0]; ++group[0])
        for (item = 0; item < kernel->group; ++item) run(kernel, launch, group, item);
  return ROSIN_OK;
}

/* What stands behind the table in memory is none of it: a reader that goes beyond `size` calls it. */
static struct {
  rosin_backend table;
  unsigned char behind[4096];
} all;

__attribute__((visibility("default"))) const rosin_backend* rosin_backend_open(uint32_t abi) {
  rosin_backend* table = &all.table;
  if (abi != ROSIN_BACKEND_ABI) return 0;
  memset(&all, 0xff, sizeof all);
  memset(&all, 0, ROSIN_BACKEND_SMALLEST);
#ifdef TABLE_WHOLE
  memset(&all, 0, sizeof *table);
#endif
  table->size = TABLE_SIZE;
  table->abi = TABLE_ABI;
  table->name = "First";
  table->version = "1";
  table->error_text = error_text;
  table->device_count = device_count;
  table->device_info = device_info;
  table->open = open_device;
  table->close = close_device;
  table->alloc = alloc;
  table->release = release;
  table->alloc_pinned = alloc_pinned;
  table->release_pinned = release_pinned;
  table->stream_create = stream_create;
  table->stream_destroy = stream_destroy;
  table->stream_sync = stream_sync;
  table->event_create = event_create;
  table->event_destroy = event_destroy;
  table->event_record = event_record;
  table->event_query = event_done;
  table->event_sync = event_done;
  table->stream_wait = stream_wait;
  table->copy_in = copy_in;
  table->copy_out = copy_out;
  table->copy = copy;
  table->compile = compile;
  table->free_bytes = free_bytes;
  table->load = load;
  table->unload = unload;
  table->kernel = kernel;
  table->launch = launch;
  return table;
}

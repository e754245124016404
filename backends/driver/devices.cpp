// Errors of the driver, devices, and opening them; see driver.hpp. Read next: memory.cpp.
#include <algorithm>
#include <cstring>
#include <memory>

#include "driver/driver.hpp"

namespace rosin::driver {

rosin_status Driver::status_of(Code code) const {
  if (code == 0) return ROSIN_OK;
  for (const Meaning& meaning : meanings) {
    if (meaning.code == code) return meaning.status;
  }
  return ROSIN_INVALID;
}

void Driver::check(Code code, const char* what) const {
  if (code == 0) return;
  const char *name = nullptr, *said = nullptr;
  functions.error_name(code, &name);
  functions.error_string(code, &said);
  throw Failure{status_of(code), std::string(what) + ": " + (said ? said : "the driver gives no text") + " (" +
                                     (name ? name : "error " + std::to_string(code)) + ")"};
}

Current::Current(const rosin_device& device) {
  const Driver& driver = the_driver();
  driver.check(driver.functions.context_push(device.context), "use of the device");
}

Current::~Current() {
  Context mine = nullptr;
  the_driver().functions.context_pop(&mine);
}

rosin_status device_count(int32_t* count) {
  return guarded([&] {
    const Driver& driver = the_driver();
    int found = 0;
    driver.check(driver.functions.device_count(&found), "count of devices");
    *count = found;
  });
}

namespace {

void check_ordinal(int32_t device) {
  const Driver& driver = the_driver();
  int count = 0;
  driver.check(driver.functions.device_count(&count), "count of devices");
  if (device >= 0 && device < count) return;
  throw Failure{ROSIN_INVALID, "there is no device " + std::to_string(device) + "; devices: " + std::to_string(count)};
}

}  // namespace

rosin_status device_info(int32_t device, rosin_device_info* info) {
  return guarded([&] {
    check_ordinal(device);
    rosin_device_info known = info_of(device);
    known.size = std::min(info->size, sizeof known);
    std::memcpy(info, &known, known.size);
  });
}

rosin_status open(int32_t device, rosin_device** out) {
  return guarded([&] {
    check_ordinal(device);
    const Driver& driver = the_driver();
    auto opened = std::make_unique<rosin_device>();
    const rosin_device_info info = info_of(device);
    opened->target = info.target;
    driver.check(driver.functions.device_get(&opened->number, device), "open");
    opened->shared_bytes = info.shared_bytes;
    driver.check(driver.functions.context_retain(&opened->context, opened->number), "open");
    *out = opened.release();
  });
}

rosin_status peer(rosin_device* device, int32_t other, int32_t* reaches) {
  return guarded([&] {
    check_ordinal(other);
    const Driver& driver = the_driver();
    DeviceNumber number = 0;
    int found = 0;
    driver.check(driver.functions.device_get(&number, other), "question for a peer");
    driver.check(needed(driver.functions.reaches, "question for a peer")(&found, device->number, number),
                 "question for a peer");
    *reaches = found != 0 || number == device->number;
  });
}

void close(rosin_device* device) {
  if (!device) return;
  if (device->attached) {
    guarded([&] {
      const Current current(*device);
      device->attached.reset();
    });
  }
  the_driver().functions.context_release(device->number);
  delete device;
}

rosin_backend table_of(const char* name, const char* version) {
  rosin_backend table{};
  table.size = sizeof table;
  table.abi = ROSIN_BACKEND_ABI;
  table.name = name;
  table.version = version;
  table.error_text = plugin::error_text;
  table.device_count = device_count;
  table.device_info = device_info;
  table.open = open;
  table.close = close;
  table.alloc = alloc;
  table.release = release;
  table.memory_left = memory_left;
  table.alloc_pinned = alloc_pinned;
  table.release_pinned = release_pinned;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_sync = stream_sync;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_query = event_query;
  table.event_sync = event_sync;
  table.stream_wait = stream_wait;
  table.copy_in = copy_in;
  table.copy_out = copy_out;
  table.copy = copy;
  table.copy_peer = copy_peer;
  table.compile = compile;
  table.free_bytes = free_bytes;
  table.load = load;
  table.unload = unload;
  table.kernel = kernel;
  table.launch = launch;
  table.graph_create = graph_create;
  table.graph_add = graph_add;
  table.graph_finish = graph_finish;
  table.graph_update = graph_update;
  table.graph_launch = graph_launch;
  table.graph_destroy = graph_destroy;
  table.native_stream = native_stream;
  table.native_memory = native_memory;
  table.fill = fill;
  table.pin = pin;
  table.unpin = unpin;
  table.peer = peer;
  table.stream_create_with = stream_create_with;
  table.stream_adopt = stream_adopt;
  table.event_create_timed = event_create_timed;
  table.event_elapsed = event_elapsed;
  return table;
}

}  // namespace rosin::driver

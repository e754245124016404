// code_names.hpp for debuggers: the interface that gdb's manual describes ("JIT Compilation Interface"), with an ELF
// file in memory for each piece of code. A debugger finds it by the two names below in librosin's table of symbols.
#include "platform/code_names.hpp"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <new>

extern "C" {  // the names and the fields are gdb's
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};

/// A debugger stops here, and reads the list then.
// NOLINTBEGIN(bugprone-reserved-identifier)
[[gnu::noinline, gnu::used]] void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
[[gnu::used]] jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};
// NOLINTEND(bugprone-reserved-identifier)
}

namespace rosin::platform {
namespace {

enum Action : uint32_t { registered = 1, unregistered = 2 };
std::mutex list_lock;

void tell_debugger(Action action, jit_code_entry* entry) {
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_register_code();
}

constexpr char section_names[] = "\0.text\0.debug_frame\0.symtab\0.strtab";  // and the name of the code behind them
enum Section : uint8_t { none, text, debug_frame, symtab, strtab, section_count };
constexpr uint8_t name_places[section_count] = {0, 1, 7, 20, 28};

constexpr size_t frame_instructions = 64;

/// Section .debug_frame: what holds for all code of a process, then what holds for this one.
struct CallFrames {
  uint32_t common_bytes = 20, common = 0xffffffff;
  // Version 1, no augmentation, factors 1 and -8, the return address is register 16; the frame of the caller is at
  // rsp + 8, and the return address 8 below it.
  uint8_t common_frame[16] = {1, 0, 1, 0x78, 16, 0x0c, 7, 8, 0x80 | 16, 1};
  uint32_t bytes = 20 + frame_instructions, offset_of_common = 0;
  uint64_t code = 0, code_bytes = 0;
  uint8_t instructions[frame_instructions] = {};  // 0 does nothing
};
static_assert(sizeof(CallFrames) == 48 + frame_instructions);

}  // namespace

/// In one piece of memory: the entry, the file, the names.
struct DebuggerEntry::Listed {
  jit_code_entry entry = {};
  Elf64_Ehdr header = {};
  Elf64_Shdr sections[section_count] = {};
  Elf64_Sym symbols[2] = {};
  CallFrames frames;
  char names[sizeof section_names];  // and the code's, with a zero behind it

  Listed(const NamedCode& code);
  void lie(Section section, uint32_t type, const void* at, size_t bytes);
};

void DebuggerEntry::Listed::lie(Section section, uint32_t type, const void* at, size_t bytes) {
  Elf64_Shdr& made = sections[section];
  made.sh_name = name_places[section];
  made.sh_type = type;
  made.sh_offset = static_cast<uint64_t>(static_cast<const char*>(at) - reinterpret_cast<const char*>(&header));
  made.sh_size = bytes;
  made.sh_addralign = 1;
}

DebuggerEntry::Listed::Listed(const NamedCode& code) {
  const auto address = reinterpret_cast<uintptr_t>(code.code);
  const size_t names_bytes = sizeof section_names + code.name.size() + 1;
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_EXEC;
  header.e_machine = EM_X86_64;
  header.e_version = EV_CURRENT;
  header.e_ehsize = sizeof header;
  header.e_shentsize = sizeof sections[0];
  header.e_shnum = section_count;
  header.e_shstrndx = strtab;
  lie(text, SHT_NOBITS, names, code.bytes);
  sections[text].sh_addr = address;
  sections[text].sh_flags = SHF_ALLOC | SHF_EXECINSTR;
  lie(debug_frame, SHT_PROGBITS, &frames, sizeof frames);
  lie(symtab, SHT_SYMTAB, symbols, sizeof symbols);
  sections[symtab].sh_link = strtab;
  sections[symtab].sh_info = 1;  // the first that is global
  sections[symtab].sh_entsize = sizeof symbols[0];
  lie(strtab, SHT_STRTAB, names, names_bytes);
  header.e_shoff = static_cast<uint64_t>(reinterpret_cast<char*>(sections) - reinterpret_cast<char*>(&header));
  symbols[1].st_name = sizeof section_names;
  symbols[1].st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
  symbols[1].st_shndx = text;
  symbols[1].st_value = frames.code = address;
  symbols[1].st_size = frames.code_bytes = code.bytes;
  if (code.frame.size() <= sizeof frames.instructions)
    std::copy(code.frame.begin(), code.frame.end(), frames.instructions);
  std::memcpy(names, section_names, sizeof section_names);
  std::memcpy(reinterpret_cast<char*>(this) + offsetof(Listed, names) + sizeof section_names, code.name.c_str(),
              code.name.size() + 1);
  entry.symfile_addr = reinterpret_cast<const char*>(&header);
  entry.symfile_size = sections[strtab].sh_offset + names_bytes;
}

std::error_code DebuggerEntry::add(const NamedCode& code) {
  listed_ = new (::operator new(sizeof(Listed) + code.name.size() + 1)) Listed(code);
  std::lock_guard lock(list_lock);
  jit_code_entry* const next = __jit_debug_descriptor.first_entry;
  listed_->entry.next_entry = next;
  if (next) next->prev_entry = &listed_->entry;
  __jit_debug_descriptor.first_entry = &listed_->entry;
  tell_debugger(registered, &listed_->entry);
  return {};
}

DebuggerEntry::~DebuggerEntry() {
  if (!listed_) return;
  {
    std::lock_guard lock(list_lock);
    jit_code_entry *const next = listed_->entry.next_entry, *const before = listed_->entry.prev_entry;
    (before ? before->next_entry : __jit_debug_descriptor.first_entry) = next;
    if (next) next->prev_entry = before;
    tell_debugger(unregistered, &listed_->entry);
  }
  ::operator delete(listed_);
}

}  // namespace rosin::platform

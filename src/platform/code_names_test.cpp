// Tests of what debuggers are told of machine code. With gdb and perf themselves: tests/code_names_test.py.
#include "platform/code_names.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#if __has_include(<elf.h>)
#include <elf.h>

// As gdb's manual has it.
extern "C" {
struct jit_code_entry {
  jit_code_entry *next_entry, *prev_entry;
  const char* symfile_addr;
  uint64_t symfile_size;
};
struct jit_descriptor {
  uint32_t version, action_flag;
  jit_code_entry *relevant_entry, *first_entry;
};
extern jit_descriptor __jit_debug_descriptor;
}
#endif

namespace rosin::platform {
namespace {

#if __has_include(<elf.h>)

/// The files that a debugger finds, newest first; each link must lead both ways.
std::vector<const jit_code_entry*> listed() {
  std::vector<const jit_code_entry*> entries;
  const jit_code_entry* before = nullptr;
  for (const jit_code_entry* entry = __jit_debug_descriptor.first_entry; entry; entry = entry->next_entry) {
    EXPECT_EQ(entry->prev_entry, before);
    entries.push_back(before = entry);
  }
  return entries;
}

template <class T> const T* part_of(const jit_code_entry& entry, uint64_t offset, uint64_t bytes) {
  EXPECT_LE(offset + bytes, entry.symfile_size);
  return reinterpret_cast<const T*>(entry.symfile_addr + offset);
}

/// The one function of a file: its name, and where it is.
struct Function {
  std::string name;
  uint64_t address = 0, bytes = 0;
  bool operator==(const Function&) const = default;
};

Function function_of(const jit_code_entry& entry) {
  Function found;
  const auto* header = part_of<Elf64_Ehdr>(entry, 0, sizeof(Elf64_Ehdr));
  EXPECT_EQ(std::string(header->e_ident, header->e_ident + SELFMAG), ELFMAG);
  const auto* sections = part_of<Elf64_Shdr>(entry, header->e_shoff, header->e_shnum * sizeof(Elf64_Shdr));
  for (int i = 0; i < header->e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const Elf64_Shdr& strings = sections[sections[i].sh_link];
    const char* names = part_of<char>(entry, strings.sh_offset, strings.sh_size);
    EXPECT_EQ(names[strings.sh_size - 1], 0);
    const auto* symbols = part_of<Elf64_Sym>(entry, sections[i].sh_offset, sections[i].sh_size);
    for (uint64_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (ELF64_ST_TYPE(symbols[k].st_info) != STT_FUNC) continue;
      const Elf64_Shdr& text = sections[symbols[k].st_shndx];
      EXPECT_EQ(text.sh_type, static_cast<uint32_t>(SHT_NOBITS));
      EXPECT_EQ(text.sh_addr, symbols[k].st_value);
      EXPECT_EQ(text.sh_size, symbols[k].st_size);
      found = {names + symbols[k].st_name, symbols[k].st_value, symbols[k].st_size};
    }
  }
  return found;
}

TEST(CodeNames, AreListedForDebuggersWhileTheirCodeStands) {
  ASSERT_EQ(__jit_debug_descriptor.version, 1u);
  const std::vector<const jit_code_entry*> others = listed();
  static const unsigned char code[3][16] = {};
  const std::string names[] = {"a loop", "", std::string(300, 'x')};
  std::optional<DebuggerEntry> entries[3];
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(entries[i].emplace().add({code[i], i + 1, names[i], {}}));
    ASSERT_EQ(listed().size(), others.size() + i + 1);
    EXPECT_EQ(__jit_debug_descriptor.action_flag, 1u);
    EXPECT_EQ(__jit_debug_descriptor.relevant_entry, listed()[0]);
    const Function function = {names[i], reinterpret_cast<uintptr_t>(code[i]), i + 1};
    EXPECT_EQ(function_of(*listed()[0]), function) << i;
  }
  for (const size_t i : {size_t{1}, size_t{2}, size_t{0}}) {  // from the middle, the beginning and the end
    entries[i].reset();
    EXPECT_EQ(__jit_debug_descriptor.action_flag, 2u);
    for (const jit_code_entry* entry : listed()) EXPECT_NE(function_of(*entry).bytes, i + 1);
  }
  EXPECT_EQ(listed(), others);
}

#else

TEST(CodeNames, AreAskedForInVain) {
  const NamedCode code;
  EXPECT_EQ(add_to_perf_map(code), std::errc::function_not_supported);
  EXPECT_EQ(add_to_jitdump(code), std::errc::function_not_supported);
  EXPECT_EQ(DebuggerEntry().add(code), std::errc::function_not_supported);
}

#endif

}  // namespace
}  // namespace rosin::platform

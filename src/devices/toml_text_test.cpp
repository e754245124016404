// Tests of reading TOML and of changing one key in it: what must stay is compared byte for byte, and random damage must
// end in an Error or in a change of that key alone.
#include "devices/toml_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include <rosin/error.hpp>

#include "../tests/error_testing.hpp"

namespace rosin {
namespace {

class TomlText : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_read_toml()) GTEST_SKIP() << "this build has no toml++";
  }
};

std::string set(const std::string& text, const std::string& value = "CUDA") {
  return with_toml_value("F.toml", text, "rosin", "gpu_backend", value);
}

std::string remove(const std::string& text) {
  return with_toml_value("F.toml", text, "rosin", "gpu_backend", std::nullopt);
}

template <class F> std::string refusal_of(F f) { return error_of(f, ErrorKind::argument); }

TEST_F(TomlText, EveryKeyAtTheTopAndInATableIsListedWithItsLine) {
  const auto entries = toml_entries("F.toml", "top = 1\n\n[rosin]\ngpu_backend = 'CPU'\nautoload = false\nx.y = 2\n");
  ASSERT_EQ(entries.size(), 4u);
  EXPECT_EQ(entries[0].table + "." + entries[0].key + " " + entries[0].text, "rosin.autoload false");
  EXPECT_EQ(entries[1].table + "." + entries[1].key + " " + entries[1].text, "rosin.gpu_backend CPU");
  EXPECT_EQ(entries[1].line, 4);
  EXPECT_EQ(entries[1].type, "string");
  EXPECT_EQ(entries[2].type, "table");
  EXPECT_EQ(entries[3].table + "." + entries[3].key + " " + entries[3].type, ".top integer");
}

TEST_F(TomlText, MalformedTextIsAnErrorWithFileAndLine) {
  for (const char* text :
       {"[rosin]\ngpu_backend = \n", "[rosin]\ngpu_backend = \"CUDA\n", "[rosin]\n\xFF = 1\n", "[rosin]\n\u00E4 = 1\n",
        "[=]\n", "[rosin]\n[rosin]\n", "[rosin]\na = 1 gpu_backend = 'CPU'\n"}) {
    const std::string said = refusal_of([&] { toml_entries("F.toml", text); });
    EXPECT_EQ(said.find("preferences: F.toml:"), 0u) << said;
    EXPECT_NE(said.find("not valid TOML"), std::string::npos) << said;
    EXPECT_EQ(refusal_of([&] { set(text); }), said);
    EXPECT_EQ(refusal_of([&] { remove(text); }), said);
  }
  EXPECT_EQ(refusal_of([] { toml_entries("F.toml", "[a]\n\n[rosin]\nx = ?\n"); }).find("preferences: F.toml:4: "), 0u);
}

struct Change {
  const char *before, *after;
};

TEST_F(TomlText, SettingChangesTheValueAndNothingElse) {
  for (const Change& change : std::vector<Change>{
           {"[rosin]\ngpu_backend = \"AMDGPU\"\n", "[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"[rosin]\ngpu_backend = \"AMDGPU\"", "[rosin]\ngpu_backend = \"CUDA\""},
           {"# A\r\n[ rosin ] # B\r\n\t\"gpu_backend\"\t=  'x'  # C\r\n[Flux]\r\n",
            "# A\r\n[ rosin ] # B\r\n\t\"gpu_backend\"\t=  \"CUDA\"  # C\r\n[Flux]\r\n"},
           {"['rosin']\nother = [1,\n 2]\n'gpu_backend'=\"\"\"\nx\n\"\"\"#C\n",
            "['rosin']\nother = [1,\n 2]\n'gpu_backend'=\"CUDA\"#C\n"},
           {"rosin.gpu_backend = 'x' # C\n[Flux]\ngpu_backend = 'AMDGPU'\n",
            "rosin.gpu_backend = \"CUDA\" # C\n[Flux]\ngpu_backend = 'AMDGPU'\n"},
           {"rosin = { a = \"\u00E4\u6F22\", gpu_backend = 'x', b = 2 }",
            "rosin = { a = \"\u00E4\u6F22\", gpu_backend = \"CUDA\", b = 2 }"},
           {"\xEF\xBB\xBFrosin.gpu_backend = 'x'\n", "\xEF\xBB\xBFrosin.gpu_backend = \"CUDA\"\n"},
           {"[a]\nt = '''\n[rosin]\ngpu_backend = 'x'\n'''\n[rosin]\ngpu_backend = 3\nf = nan\n",
            "[a]\nt = '''\n[rosin]\ngpu_backend = 'x'\n'''\n[rosin]\ngpu_backend = \"CUDA\"\nf = nan\n"},
           {"\"\u00E4\" = 1\n\"\u6F22\" = \"~C3\xFF\"\n[rosin] # \u00FC\ngpu_backend = \"\u00E9\" # ~",
            "\"\u00E4\" = 1\n\"\u6F22\" = \"~C3\xFF\"\n[rosin] # \u00FC\ngpu_backend = \"CUDA\" # ~"},
           {"[rosin]\ngpu_backend = ['a',\n'b'] # C\n", "[rosin]\ngpu_backend = \"CUDA\" # C\n"}}) {
    EXPECT_EQ(set(change.before), change.after);
    EXPECT_EQ(set(change.after), change.after);
  }
}

TEST_F(TomlText, ANewKeyGetsALineWhereItsTableAllowsOne) {
  for (const Change& change : std::vector<Change>{
           {"", "[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"\xEF\xBB\xBF", "\xEF\xBB\xBF[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"# note", "# note\n\n[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"[Flux]\r\na = 1\r\n", "[Flux]\r\na = 1\r\n\r\n[rosin]\r\ngpu_backend = \"CUDA\"\r\n"},
           {"[rosin]", "[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"[rosin] # C\r\nautoload = false\r\n[Flux]",
            "[rosin] # C\r\ngpu_backend = \"CUDA\"\r\nautoload = false\r\n[Flux]"},
           {"a = '''\n[rosin]\n'''\n[rosin]\n", "a = '''\n[rosin]\n'''\n[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"[rosin.deeper]\na = 1\n", "[rosin.deeper]\na = 1\n\n[rosin]\ngpu_backend = \"CUDA\"\n"},
           {"[rosin.deeper]\n[rosin]\na = 1\n", "[rosin.deeper]\n[rosin]\ngpu_backend = \"CUDA\"\na = 1\n"},
           {"rosin.autoload = false\n[Flux]\na = 1\n",
            "rosin.gpu_backend = \"CUDA\"\nrosin.autoload = false\n[Flux]\na = 1\n"}}) {
    EXPECT_EQ(set(change.before), change.after);
  }
}

TEST_F(TomlText, AnyTextCanBeAValue) {
  for (const char* value : {"", "a\"\\\n\x01\x7F", "\u00E4~C3~~", "\xFF"}) {
    EXPECT_EQ(toml_entries("F.toml", set("", value)).at(0).text, value);
  }
}

TEST_F(TomlText, RemovingTakesTheLineAndLeavesItsComment) {
  for (const Change& change :
       std::vector<Change>{{"", ""},
                           {"[Flux]\ngpu_backend = 'CUDA'\n", "[Flux]\ngpu_backend = 'CUDA'\n"},
                           {"[rosin]\ngpu_backend = 'CUDA'\nautoload = true\n", "[rosin]\nautoload = true\n"},
                           {"[rosin]\r\n gpu_backend = 'CUDA' \r\nautoload = true", "[rosin]\r\nautoload = true"},
                           {"[rosin]\ngpu_backend = 'CUDA'", "[rosin]\n"},
                           {"[rosin]\n  gpu_backend = 'CUDA' # why\n", "[rosin]\n  # why\n"},
                           {"[rosin]\ngpu_backend = '''\nx'''\n[a]\n", "[rosin]\n[a]\n"},
                           {"\xEF\xBB\xBFrosin.gpu_backend = 'x'\n[a]\n", "\xEF\xBB\xBF[a]\n"}}) {
    EXPECT_EQ(remove(change.before), change.after);
  }
}

TEST_F(TomlText, AFormThatAllowsNoSafeChangeIsAnErrorWithFileAndLine) {
  const std::string inline_table = "a = 1\nrosin = { autoload = true }\n";
  EXPECT_EQ(refusal_of([&] { set(inline_table); }),
            "preferences: F.toml:2: gpu_backend cannot be set without touching other text; [rosin] is written as an "
            "inline table or the like; change the line by hand");
  EXPECT_EQ(
      refusal_of([&] { remove("rosin = { autoload = true, gpu_backend = 'CPU' }\n"); }),
      "preferences: F.toml:1: gpu_backend cannot be removed without touching other text; [rosin] is written as an "
      "inline table or the like; change the line by hand");
  EXPECT_EQ(refusal_of([&] { set("[[rosin]]\na = 1\n"); }).find("preferences: F.toml:1: "), 0u);
  EXPECT_EQ(refusal_of([&] { set("\nrosin = 3\n"); }).find("preferences: F.toml:2: "), 0u);
}

// --- Depth. ---

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST_F(TomlText, ATextThatIsTooDeepIsAnErrorBeforeItIsParsed) {
  constexpr int deep = 50000;
  const std::string dots = repeated(".a", deep);
  for (const std::string& text : {
           "a" + dots + " = 1",
           "a" + repeated(R"( . 'a."' . "a\"'")", deep) + " = 1",
           "[a" + dots + "]",
           "[[a" + dots + "]]",
           "a = " + repeated("[", deep) + repeated("]", deep),
           "a = " + repeated("{ a = ", deep),
           "a = " + repeated("[{ a.b.c = ", deep),
           "s = \"\"\"\"\"x\"\"\"\"\" # '\nt = '\\'\nl = '''\n\\'''''\na" + dots + " = 1",
           "[x]\na = \"unfinished\nb = " + repeated("[", deep),
       }) {
    const std::string said = refusal_of([&] { toml_entries("F.toml", text); });
    EXPECT_NE(said.find("deep; the line has more; shorten it or remove the file"), std::string::npos) << said;
    EXPECT_EQ(refusal_of([&] { set(text); }), said);
  }
  const std::string third = "\n\n[a" + repeated(".a", 17) + "]", long_text = "# " + repeated("long", 300000);
  EXPECT_EQ(refusal_of([&] { toml_entries("F.toml", third); }).find("preferences: F.toml:3: "), 0u);
  EXPECT_NE(refusal_of([&] { toml_entries("F.toml", long_text); }).find("at most 1048576 bytes"), std::string::npos);
}

TEST_F(TomlText, WhatIsDeepInsideOfStringsAndWideListsIsNotDeep) {
  const std::string odd = repeated("[.{", 100), list = repeated("1.5, ", 100) + repeated("[1, {x.y = 2.0}], ", 100);
  const std::string text = "a = [" + list + "]\nb = '" + odd + "' # " + odd + "\nc = \"\"\"\n\\\"\"\"" + odd +
                           "\"\"\"\nd" + repeated(".d", 15) + " = 1\n";
  EXPECT_EQ(toml_entries("F.toml", text).size(), 4u);
  EXPECT_EQ(set(text).find(text), 0u);
}

TEST_F(TomlText, OddNumbersAndStringsComeToAnEnd) {
  const std::string text = "a = [1,inf]\n[rosin]\ngpu_= \"\"\"\"\"A\"\"\"\n";
  EXPECT_EQ(toml_entries("F.toml", text).size(), 2u);
  EXPECT_EQ(set(text), "a = [1,inf]\n[rosin]\ngpu_backend = \"CUDA\"\ngpu_= \"\"\"\"\"A\"\"\"\n");
  EXPECT_EQ(remove(text), text);
}

// --- Random damage. ---

const std::vector<std::string> seeds = {
    "# Devices\n[rosin]\ngpu_backend = \"CUDA\"  # the big one\nautoload = false\n\n[Flux]\ngpu_backend = \"AMDGPU\"\n",
    "[Flux]\r\ngpu_backend = 'CPU'\r\n[rosin]\r\n'gpu_backend' = 'Metal'\r\n[a.b]\r\nx = [1, 2.5, nan]\r\n",
    "rosin.gpu_backend = \"CUDA\"\nrosin.autoload = true\n[Lux]\nt = 1979-05-27T07:32:00Z\n",
    "title = \"\"\"\n[rosin]\n\"\"\"\nrosin = { gpu_backend = \"CPU\", autoload = true }\n[[points]]\nx = 0x1F\n",
    "[MLDataDevices]\ngpu_backend = \"Reactant\"\n[rosin]\nmpi_gpu_aware = true",
};

std::string damaged(std::string text, std::mt19937& random) {
  const std::string alphabet("\"'[]{}=#.,\n\r\t \\ruax01-+_\xC3\x00\xFF", 27);
  const auto below = [&](size_t end) { return static_cast<size_t>(random()) % end; };
  for (size_t left = 1 + below(3); left > 0; --left) {
    const size_t at = below(text.size());
    const char letter = alphabet[below(alphabet.size())];
    switch (below(4)) {
      case 0: text[at] = letter; break;
      case 1: text.insert(text.begin() + static_cast<long>(at), letter); break;
      case 2: text.erase(at, 1 + below(4)); break;
      default: text.insert(at, text.substr(below(text.size()), below(24))); break;
    }
    if (text.empty()) text = "\n";
  }
  return text;
}

/// All that the entries say but for the key, whatever line they stand in.
std::vector<std::string> other_entries(const std::string& text) {
  std::vector<std::string> said;
  for (const TomlEntry& entry : toml_entries("F", text)) {
    if (entry.table == "rosin" && entry.key == "gpu_backend") continue;
    said.push_back(entry.table + "\n" + entry.key + "\n" + entry.type + "\n" + entry.text);
  }
  return said;
}

const TomlEntry* find_key(const std::vector<TomlEntry>& entries) {
  const auto found = std::find_if(entries.begin(), entries.end(), [](const TomlEntry& entry) {
    return entry.table == "rosin" && entry.key == "gpu_backend";
  });
  return found == entries.end() ? nullptr : &*found;
}

/// The bytes of `before` that are not at the beginning or the end of `after`.
std::string lost_bytes(const std::string& before, const std::string& after) {
  size_t head = 0, tail = 0;
  const size_t most = std::min(before.size(), after.size());
  while (head < most && before[head] == after[head]) ++head;
  while (tail < most - head && before[before.size() - 1 - tail] == after[after.size() - 1 - tail]) ++tail;
  return before.substr(head, before.size() - head - tail);
}

void check_change(const std::string& before, const std::string& after, bool setting) {
  const auto entries_before = toml_entries("F", before), entries_after = toml_entries("F", after);
  const TomlEntry *old = find_key(entries_before), *made = find_key(entries_after);
  EXPECT_EQ(made && made->text == "OpenCL", setting) << before;
  EXPECT_EQ(other_entries(before), other_entries(after)) << before;
  const std::string lost = lost_bytes(before, after);
  if (!old) EXPECT_EQ(lost, "") << before;
  else if (old->type != "string" || old->text.find('\n') != std::string::npos) return;
  else if (setting) EXPECT_EQ(lost.find('\n'), std::string::npos) << before;
  else EXPECT_LE(std::count(lost.begin(), lost.end(), '\n'), 1) << before;
}

TEST_F(TomlText, RandomDamageEndsInAnErrorOrInAChangeOfTheKeyAlone) {
  std::mt19937 random(20240229);
  int errors = 0, changes = 0;
  for (int round = 0; round < 4000; ++round) {
    const std::string text = damaged(seeds[static_cast<size_t>(round) % seeds.size()], random);
    const bool setting = round % 3 != 0;
    try {
      toml_entries("F", text);
      check_change(text, setting ? set(text, "OpenCL") : remove(text), setting);
      ++changes;
    } catch (const Error&) {
      ++errors;
    }
    if (HasFailure()) break;
  }
  EXPECT_GT(errors, 400);
  EXPECT_GT(changes, 400);
}

}  // namespace
}  // namespace rosin

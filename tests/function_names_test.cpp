// Functions of one array print their names, as layers and as activations: a test against the public headers.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "graph/op.hpp"

namespace rosin {
namespace {

const std::filesystem::path headers = std::filesystem::path(ROSIN_SOURCE_DIR) / "include/rosin";

/// But for those that mark an array for gradients and walks.
std::set<std::string> declared_functions() {
  std::set<std::string> names;
  const std::regex declaration("^ROSIN_API Array ([a-z_0-9]+)\\(const Array& [a-z_]+\\);");
  for (const auto& file : std::filesystem::directory_iterator(headers)) {
    std::ifstream lines(file.path());
    std::smatch found;
    for (std::string line; std::getline(lines, line);) {
      if (std::regex_search(line, found, declaration)) names.insert(found[1]);
    }
  }
  names.erase("stop_gradient");
  names.erase("tied");
  names.erase("rescale");  // of data: no model holds it
  return names;
}

TEST(FunctionNames, EveryPublicFunctionOfOneArrayHasOne) {
  std::set<std::string> named;
  for (const std::string_view name : function_names()) EXPECT_TRUE(named.emplace(name).second) << name;
  // Flux writes these with a Greek letter.
  for (const auto& [shown, name] : {std::pair{"σ", "sigmoid"}, {"hardσ", "hardsigmoid"}, {"logσ", "logsigmoid"}}) {
    EXPECT_EQ(named.erase(shown), 1u) << shown;
    named.insert(name);
  }
  const std::set<std::string> declared = declared_functions();
  for (const std::string& name : declared) EXPECT_TRUE(named.count(name)) << name << " has no name to print";
  for (const std::string& name : named) EXPECT_TRUE(declared.count(name)) << name << " is no public function";
}

}  // namespace
}  // namespace rosin

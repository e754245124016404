// The rules that users stated inside gradient calls of one thread; they live until the outermost call ends.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <rosin/gradient_rules.hpp>

namespace rosin {

class CustomRules {
 public:
  static CustomRules& of_thread();
  void add(uint64_t sequence, detail::CustomRule rule);
  /// The rule of the node with this sequence number, or null.
  const detail::CustomRule* find(uint64_t sequence) const;
  void clear() { rules_.clear(); }

 private:
  std::vector<std::pair<uint64_t, detail::CustomRule>> rules_;
};

}  // namespace rosin

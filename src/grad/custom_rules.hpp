// The rules that users stated inside gradient calls of one thread; they live until the outermost call ends.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <rosin/gradient_rules.hpp>

namespace rosin {

class CustomRules {
 public:
  struct Rule {
    uint64_t sequence;  // of the node that it belongs to
    detail::CustomRule gives;
    std::vector<Array> slopes;  // by each of several values, as far as a walk under way has found them
  };

  static CustomRules& of_thread();
  void add(uint64_t sequence, detail::CustomRule rule, size_t values = 1) {
    rules_.push_back({sequence, std::move(rule), std::vector<Array>(values)});
  }
  /// The rule of the node with this sequence number, or null.
  Rule* find(uint64_t sequence);
  /// A gradient call that began with this sequence number ends; what a walk that failed has found does not count.
  void forget_slopes(uint64_t first);
  void clear() { rules_.clear(); }

 private:
  std::vector<Rule> rules_;
};

}  // namespace rosin

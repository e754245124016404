// Visitors of rules.
#include "optim/options.hpp"

#include <cmath>
#include <memory>
#include <span>
#include <vector>

#include <rosin/error.hpp>
#include <rosin/rule.hpp>

namespace rosin {

RuleVisitor::~RuleVisitor() = default;
void RuleVisitor::label(std::string_view) {}
detail::ErasedRule::~ErasedRule() = default;

namespace {

class CheckRates : public RuleVisitor {
 public:
  explicit CheckRates(std::string_view op) : op_(op) {}
  void enter(std::string_view rule) override { rules_.emplace_back(rule); }
  void leave() override { rules_.pop_back(); }
  void option(const RuleOption& option) override {
    if (option.name != "eta" || !option.numbers || *option.numbers >= 0) return;
    throw Error(ErrorKind::argument,
                op_ + ": " + rules_.back() + ": the learning rate cannot be " +
                    (std::isnan(*option.numbers) ? "NaN; give a number, such as 0.001"
                                                 : "negative, got " + number_text(*option.numbers)));
  }

 private:
  std::string op_;
  std::vector<std::string> rules_;
};

class ChangeOptions : public RuleVisitor {
 public:
  explicit ChangeOptions(const Adjustment& change) : change_(change) {}
  void enter(std::string_view) override {}
  void leave() override {}
  void option(const RuleOption& option) override {
    take(option, "eta", std::span(&change_.eta, 1));
    take(option, "rho", std::span(&change_.rho, 1));
    take(option, "beta", change_.beta);
    take(option, "epsilon", std::span(&change_.epsilon, 1));
    take(option, "lambda", std::span(&change_.lambda, 1));
    take(option, "delta", std::span(&change_.delta, 1));
    take(option, "omega", std::span(&change_.omega, 1));
  }

 private:
  static void take(const RuleOption& option, std::string_view name, std::span<const double> values) {
    if (option.name != name || static_cast<size_t>(option.count) != values.size()) return;
    for (size_t i = 0; i < values.size(); ++i) {
      if (!std::isnan(values[i])) option.numbers[i] = values[i];
    }
  }

  const Adjustment& change_;
};

class RuleText : public RuleVisitor {
 public:
  void enter(std::string_view rule) override {
    separate();
    text.append(rule).append("(");
    first_ = true;
  }
  void leave() override {
    text += ")";
    first_ = false;
  }
  void option(const RuleOption& option) override {
    separate();
    if (option.integer) text += std::to_string(*option.integer);
    else if (option.flag) text += *option.flag ? "true" : "false";
    else if (option.type) text += to_string(*option.type);
    else if (option.count == 1) text += number_text(*option.numbers);
    else add_tuple(option);
  }
  void label(std::string_view label) override {
    separate();
    text += label;
  }
  std::string text;

 private:
  void separate() {
    if (!first_) text += ", ";
    first_ = false;
  }
  void add_tuple(const RuleOption& option) {
    text += "(";
    for (int i = 0; i < option.count; ++i) text += (i > 0 ? ", " : "") + number_text(option.numbers[i]);
    text += ")";
  }

  bool first_ = true;
};

}  // namespace

void check_rates(std::string_view op, detail::ErasedRule& rule) {
  CheckRates visitor{op};
  rule.describe(visitor);
}

void change_options(detail::ErasedRule& rule, const Adjustment& change) {
  ChangeOptions visitor{change};
  rule.describe(visitor);
}

std::string rule_text(const detail::ErasedRule& rule) {
  const std::unique_ptr<detail::ErasedRule> copy(rule.copy());
  RuleText visitor;
  copy->describe(visitor);
  return visitor.text;
}

}  // namespace rosin

// InParts: ops of several steps that are recorded step by step. Read next: attention.hpp, measures.cpp (who asks).
#pragma once

#include <cstdint>

namespace rosin {

/// While one lives on a thread, attention and distances are recorded in parts, op by op: for files that have no such
/// ops; or, `dropping`, only attention that drops weights.
class InParts {
 public:
  enum Which : uint8_t { none, dropping, all };
  explicit InParts(Which which = all) noexcept;
  ~InParts();
  InParts(const InParts&) = delete;
  InParts& operator=(const InParts&) = delete;
  /// What the innermost one of this thread asks for, and those around it.
  static Which now() noexcept;

 private:
  Which outer_;
};

}  // namespace rosin

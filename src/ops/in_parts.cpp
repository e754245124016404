// See in_parts.hpp.
#include "ops/in_parts.hpp"

#include <algorithm>
#include <utility>

namespace rosin {
namespace {

thread_local InParts::Which asked = InParts::none;

}  // namespace

InParts::InParts(Which which) noexcept : outer_(std::exchange(asked, std::max(which, asked))) {}
InParts::~InParts() { asked = outer_; }
InParts::Which InParts::now() noexcept { return asked; }

}  // namespace rosin

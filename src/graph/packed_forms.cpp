// See packed_forms.hpp.
#include "graph/packed_forms.hpp"

#include <algorithm>

#include <rosin/error.hpp>

#include "graph/hooks.hpp"
#include "platform/processor.hpp"

namespace rosin {

PackedForms& PackedForms::instance() {
  static PackedForms* const forms = new PackedForms;  // never destroyed: globals of the user outlive it otherwise
  return *forms;
}

PackedForms::PackedForms() : limit_(platform::memory_bytes() / 4) {}

const PackedForms::Form* PackedForms::among(const Forms& forms, const WantedForm& wanted) {
  const auto found = std::find_if(forms.begin(), forms.end(), [&](const Form& form) {
    return form.of.name == wanted.name && form.of.offset == wanted.offset && form.of.bytes == wanted.bytes;
  });
  return found == forms.end() ? nullptr : &*found;
}

std::shared_ptr<const Memory> PackedForms::kept(const Memory& memory, const WantedForm& wanted) {
  if (memory.reading.load(std::memory_order_acquire) != Reading::packed) return nullptr;
  std::lock_guard lock(lock_);
  const auto at = forms_.find(&memory);
  if (at == forms_.end()) return nullptr;
  const Form* const form = among(at->second, wanted);
  return form ? form->memory : nullptr;
}

/// Memory for a form, or null; what it takes is counted by keep().
std::shared_ptr<Memory> PackedForms::room(size_t bytes) {
  {
    std::lock_guard lock(lock_);
    if (bytes_ + static_cast<int64_t>(bytes) > limit_) return nullptr;
  }
  try {
    return {hooks.allocate({.bytes = bytes}), [](Memory* memory) { release(memory); }};
  } catch (const Error&) {
    return nullptr;  // the call makes the form for itself
  }
}

/// What another thread has kept meanwhile stays.
std::shared_ptr<const Memory> PackedForms::keep(Memory& memory, const WantedForm& wanted,
                                                std::shared_ptr<Memory> made) {
  std::lock_guard lock(lock_);
  Forms& forms = forms_[&memory];
  if (const Form* const there = among(forms, wanted)) return there->memory;
  bytes_ += static_cast<int64_t>(made->bytes);
  forms.push_back({wanted, made});
  memory.reading.store(Reading::packed, std::memory_order_release);
  return made;
}

void PackedForms::drop(const Memory& memory) noexcept {
  Forms gone;  // is released without the lock
  std::lock_guard lock(lock_);
  const auto at = forms_.find(&memory);
  if (at == forms_.end()) return;
  gone = std::move(at->second);
  for (const Form& form : gone) bytes_ -= static_cast<int64_t>(form.memory->bytes);
  forms_.erase(at);
}

void PackedForms::trim() noexcept {
  std::unordered_map<const Memory*, Forms> gone;
  std::lock_guard lock(lock_);
  gone.swap(forms_);
  bytes_ = 0;
}

int64_t PackedForms::bytes() {
  std::lock_guard lock(lock_);
  return bytes_;
}

void PackedForms::set_limit(int64_t bytes) {
  {
    std::lock_guard lock(lock_);
    limit_ = bytes;
    if (bytes_ <= limit_) return;
  }
  trim();
}

}  // namespace rosin

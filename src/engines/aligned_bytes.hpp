// AlignedBytes: memory for what is done once, aligned as workspaces of calls are.
#pragma once

#include <cstddef>
#include <memory>
#include <new>

namespace rosin::engines {

class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes)
      : memory_(static_cast<char*>(::operator new(bytes, std::align_val_t{alignment}))) {}
  char* data() const noexcept { return memory_.get(); }

 private:
  static constexpr size_t alignment = 64;
  struct Delete {
    void operator()(char* memory) const noexcept { ::operator delete(memory, std::align_val_t{alignment}); }
  };
  std::unique_ptr<char, Delete> memory_;
};

}  // namespace rosin::engines

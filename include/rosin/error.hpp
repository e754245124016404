// The one exception type of rosin. Text: `op: rule broken; what came; cure`.
#pragma once

#include <cstdint>
#include <exception>
#include <string>

#include <rosin/export.hpp>

namespace rosin {

/// What kind of rule was broken; the list is closed.
enum class ErrorKind : uint8_t { shape, dtype, device, argument, numeric, io, memory, backend, distributed, internal };

/// Name of a kind, e.g. "shape".
ROSIN_API const char* to_string(ErrorKind kind) noexcept;

/// Thrown by every function of rosin that cannot do what it was asked to do. Copying does not throw.
class ROSIN_API Error : public std::exception {
 public:
  Error(ErrorKind kind, const std::string& message);
  Error(const Error& other) noexcept;
  Error& operator=(const Error& other) noexcept;
  ~Error() override;

  ErrorKind kind() const noexcept { return kind_; }
  const char* what() const noexcept override;

 private:
  struct Text;
  ErrorKind kind_;
  Text* text_;
};

}  // namespace rosin

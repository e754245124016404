// The one exception type of rosin. Text: `op: rule broken; what came; cure`.
#pragma once

#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

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
  /// Where in a model it arose, "blocks[3].conv1": the text begins with it. Empty outside models, and where no chain or
  /// gradient call that knows the model was on the way.
  const std::string& path() const noexcept;

  /// For the library: the layer in which it arose, an object of a class of that name ("" and null: none yet).
  struct Place {
    const void* object = nullptr;
    std::string_view type;
    bool operator==(const Place&) const = default;
  };
  Place place() const noexcept;
  /// For the library: it arose in `layer`, which shows itself so. Later changes of the path begin the text.
  void arose_in(const Place& layer, const std::string& shown);
  /// For the library: `whole` has the place at that path.
  void arose_below(const Place& whole, const std::string& path);

 private:
  struct Text;
  ErrorKind kind_;
  Text* text_;
};

}  // namespace rosin

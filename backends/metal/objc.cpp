// See objc.hpp.
#include "metal/objc.hpp"

#include "metal/messages.hpp"

namespace rosin::metal {

Id string_of(const char* text) { return send::string_with_utf8(runtime().get_class("NSString"), text); }

std::string text_of(Id string) {
  const char* text = send::utf8(string);
  return text ? text : "";
}

}  // namespace rosin::metal

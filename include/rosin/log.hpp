// Notices of the library: one replaceable sink; each notice has an id, is said once per process and can be switched
// off.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <rosin/export.hpp>

namespace rosin {

enum class LogLevel : uint8_t { info, warning };

/// What a sink receives. The views are valid during the call.
struct LogMessage {
  LogLevel level;
  std::string_view id;  // e.g. "unwalked-class"; empty for notices that are asked for (verbose = true)
  std::string_view text;
};

/// Receives every notice; called by one thread at a time. `data` is what set_log_sink was given.
using LogSink = void (*)(const LogMessage& message, void* data);

/// Replaces the sink; nullptr brings the first one back, which writes to stderr.
ROSIN_API void set_log_sink(LogSink sink, void* data = nullptr);

/// Switches the notices of one id off or on again.
ROSIN_API void set_log_enabled(std::string_view id, bool enabled);

/// Says `text` unless a notice with this id was said before in this process. With a subject (a class, a layer) it is
/// said once for each subject.
ROSIN_API void warn_once(std::string_view id, std::string_view text, std::string_view subject = {});
ROSIN_API void inform_once(std::string_view id, std::string_view text, std::string_view subject = {});

/// Says `text` now; for output that the user asked for.
ROSIN_API void inform(std::string_view text);

/// Makes an error of what a layer otherwise converts with a warning: input of another float type than its parameters.
/// For the whole process; ROSIN_STRICT=1 is the same from the start.
ROSIN_API void set_strict(bool on = true);
ROSIN_API bool is_strict();

/// Forgets what was said, so that tests can hear it again.
ROSIN_API void forget_said();

}  // namespace rosin

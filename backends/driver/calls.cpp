// Vendor calls, as far as all plug-ins run them alike: preparing them is each plug-in's own. Read next: graphs.cpp.
#include "driver/driver.hpp"

namespace rosin::driver {

void call_destroy(rosin_call* call) {
  if (!call) return;
  guarded([&] {
    const Current current(*call->device);
    delete call;
  });
}

rosin_status call_run(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                      const rosin_call_numbers* numbers) {
  return guarded([&] {
    const Current current(*stream->device);
    call->run(stream->stream, buffers, workspace, numbers);
  });
}

rosin_status call_tune(rosin_stream* stream, rosin_call* call, const rosin_place* buffers, rosin_place workspace,
                       uint64_t bytes, const rosin_call_numbers* numbers, uint64_t* needed) {
  return guarded([&] {
    const Current current(*stream->device);
    *needed = call->tune(stream->stream, buffers, workspace, bytes, numbers);
  });
}

rosin_status call_choice(rosin_call* call, const void** bytes, uint64_t* count) {
  return guarded([&] {
    const std::string_view choice = call->choice();
    *bytes = choice.data();
    *count = choice.size();
  });
}

}  // namespace rosin::driver

// See calls.hpp.
#include "vendor/calls.hpp"

namespace rosin::vendor {
namespace {

rosin_status call_takes(rosin_device* device, const rosin_call_description* description, int32_t* orders) {
  return driver::guarded([&] {
    const rosin_call_description call = known_fields(*description);
    maker_of(call.kind).take(*device, call, orders);
  });
}

rosin_status call_prepare(rosin_device* device, const rosin_call_description* description, rosin_call** out,
                          uint64_t* workspace) {
  return driver::guarded([&] {
    const rosin_call_description wanted = known_fields(*description);
    const CallMaker& maker = maker_of(wanted.kind);
    const driver::Current current(*device);
    *out = maker.prepare(*device, wanted, workspace).release();
  });
}

}  // namespace

rosin_call_description known_fields(const rosin_call_description& call) {
  rosin_call_description known{};
  std::memcpy(&known, &call, std::min(call.size, sizeof known));
  return known;
}

void put_calls(rosin_backend& table) {
  table.call_takes = call_takes;
  table.call_prepare = call_prepare;
  table.call_destroy = driver::call_destroy;
  table.call_run = driver::call_run;
  table.call_tune = driver::call_tune;
  table.call_choice = driver::call_choice;
}

}  // namespace rosin::vendor

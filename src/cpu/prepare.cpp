// Which kernel answers a call; see call.hpp.
#include "cpu/call.hpp"
#include "cpu/contraction.hpp"
#include "cpu/dispatch.hpp"

namespace rosin::cpu {

std::unique_ptr<Call> prepare(const CallSpec& spec) {
  switch (spec.op->kind) {
    case Kind::movement: return prepare_movement(spec);
    case Kind::gather: return prepare_gather(spec);
    case Kind::scatter: return prepare_scatter(spec);
    case Kind::contraction: return prepare_contraction(spec);
    case Kind::window: return prepare_window(spec);
    case Kind::sort: return prepare_sort(spec);
    case Kind::scan: return prepare_scan(spec);
    case Kind::random: return prepare_random(spec);
    case Kind::routine: return prepare_routine(spec);
    case Kind::attention: return prepare_attention(spec);
    case Kind::leaf:  // no calls
    case Kind::scalar:
    case Kind::argument:
    case Kind::elementwise:
    case Kind::draw:
    case Kind::reduction:
    case Kind::part:
    case Kind::transfer: break;
  }
  throw_unknown(*spec.op, "the CPU");
}

}  // namespace rosin::cpu

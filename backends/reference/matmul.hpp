// The vendor call: matmul with plain loops, so that rosin's way through vendor calls can be tested without a vendor.
// With vendor=1 it has bias and relu as epilogues, with vendor=2 all that backend.h says of matmul.
#pragma once

#include <vector>

#include <rosin/backend.h>

#include "device.hpp"

namespace rosin::reference {

/// The ways that a call may be computed in, for call_tune: along columns of the result, or along its rows.
enum class MatmulWay : uint8_t { columns, rows };

/// A matmul that has been checked; it owns what it describes.
struct Matmul {
  std::vector<rosin_call_array> arrays;
  rosin_epilogue epilogue{};
  bool accumulate = false;
  bool scaled = false;
  MatmulWay way = MatmulWay::columns;

  /// The place of the array of that role among all, or -1.
  int find(rosin_role wanted) const;
  const rosin_call_array& left() const { return arrays[0]; }
  const rosin_call_array& right() const { return arrays[1]; }
  const rosin_call_array& result() const { return arrays.back(); }
};

}  // namespace rosin::reference

struct rosin_call {
  rosin_device* device = nullptr;
  rosin::reference::Matmul what;
  char choice[8] = {};  // as call_choice gives it
};

namespace rosin::reference {

/// Device memory that a call needs; it is only asked for and looked at.
inline constexpr uint64_t matmul_workspace = 256;

/// Throws Failure with ROSIN_UNSUPPORTED for what is no matmul that the options offer. Sizes are not looked at.
Matmul checked_matmul(const rosin_device& device, const rosin_call_description& what);
/// The same for sizes, with the bytes of workspace that are allowed: with vendor_rows=N, products of more than N rows
/// are unsupported.
void check_sizes(const rosin_device& device, const Matmul& what, uint64_t workspace);

/// One run of it: the bytes of each array, checked against its block, and its numbers.
struct MatmulRun {
  std::vector<char*> bytes;
  double alpha = 1;
  double beta = 1;
};
MatmulRun matmul_run(const rosin_call& call, const rosin_place* buffers, const rosin_call_numbers* numbers);

void matmul(const Matmul& what, const MatmulRun& run);

/// The way that these bytes of another call name; columns where they name none.
MatmulWay way_in(const void* choice, uint64_t bytes);
void put_choice(rosin_call& call);

}  // namespace rosin::reference

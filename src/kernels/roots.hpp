// Roots: reductions of a fused kernel over other dims than the row, each a kernel of its own, or two where parts are
// added up by themselves first. Read first: body.hpp, shares.hpp. Read next: fused.cpp.
#pragma once

#include <map>
#include <vector>

#include "kernels/body.hpp"
#include "kernels/launches.hpp"

namespace rosin::kernels {

/// One reduction to be written: the instr of its root, and where its operand stands if it is not computed again.
struct RootJob {
  size_t instr;
  int32_t scratch = -1;  // of the operand, in the type it is computed in
};

/// The launches of all roots of a kernel. `given`: what stands in scratch blocks of the rows' values that operands
/// need. `ends`: kernels on their results (Step::ends), of which those that stand in these launches are taken out.
/// Whether the last walk has done `stores` on its way.
bool write_roots(const Layout& layout, int32_t kernel, ScalarType index, const std::vector<RootJob>& roots,
                 const std::map<size_t, int32_t>& given, const std::vector<size_t>& stores, std::vector<int32_t>& ends,
                 LaunchList& list);

/// Where a row program has left the operands of roots that are the sums of few rows: writes behind it, in its launch of
/// `groups`, that the last group adds them up. False: nothing is written, they need launches of their own.
bool add_up_behind(KernelWriter& writer, const Layout& layout, int32_t kernel, const std::vector<RootJob>& roots,
                   int64_t groups, std::vector<int32_t>& ends, LaunchList& list);

/// Whether the root adds up, over all rows, each element of the row; and may do so in an order that is not that of
/// roots which are added up alone.
bool may_be_added_by_rows(const Layout& layout, int32_t kernel, const RootJob& root);

/// Adds up the parts of such roots that a row program has left in their scratch blocks, see RowSums.
void add_up_parts(const Layout& layout, int32_t kernel, ScalarType index, const std::vector<RootJob>& roots,
                  int64_t parts, std::vector<int32_t>& ends, LaunchList& list);

}  // namespace rosin::kernels

// Findings: what a step of training may not go on with, found by a device beside the program. Nobody waits for them;
// they are reported as indices out of range are, at a later boundary (run/index_flags.hpp).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <rosin/array.hpp>

namespace rosin {

/// The number of these texts, one for each value that is looked at: Error (numeric) says one of them, with the first
/// {} replaced by the value. In the last text a second {} is a count that the caller passes, see `finding`. Equal texts
/// have one number, which stays as long as the process.
int64_t finding_texts(const std::vector<std::string>& texts);

/// Where the element `value` is NaN or infinite: what that is and which of the texts tells of it, as an Int64 above 0.
/// `which` beyond the last text: the last, with a count of which - (texts - 1). Else 0.
Array finding(const Array& value, int64_t which);

/// Of two findings the first that is not 0.
Array first_finding(const Array& first, const Array& second);

/// True, of shape {}; where `found` is not 0 the run fails with what texts number `texts` say of it.
Array nothing_found(const Array& found, int64_t texts);

}  // namespace rosin

// The table of public ops: how each function is called from an oracle case. Beside the public headers and the oracle
// files it is the only list of ops; op_table_test.cpp holds these three and the registry together.
// Read first: oracles/README.md, oracle_reader.hpp. Read next: op_suite.hpp (what is done with every case).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "op_oracles.hpp"

namespace rosin::suite {

using oracles::OracleArray;
using oracles::OracleCall;
using oracles::OracleCase;
using Arrays = std::vector<Array>;

/// One public function and the oracle op whose cases it computes. A function may stand in several rows; a call gives
/// nothing (an empty list) for a case that the function cannot express.
struct OpEntry {
  std::string_view name;    // of the public function
  std::string_view oracle;  // of the cases; empty: its values stand in a unit test beside its source
  OracleCall call;
};

const std::vector<OpEntry>& op_table();

/// The rows of losses (op_table_losses.cpp).
std::vector<OpEntry> loss_entries();
/// Those of images at other sizes (op_table_resample.cpp).
std::vector<OpEntry> resample_entries();

/// Functions without an oracle of the op suite (op_table_untabled.cpp): their values follow from their arguments alone,
/// or from counters, and unit tests state them.
std::vector<OpEntry> untabled_entries();

/// The oracle files whose cases are ops.
const std::vector<std::string>& op_oracle_files();

/// Reads a file of oracles once.
const std::vector<OracleCase>& cases_of(const std::string& file);

}  // namespace rosin::suite

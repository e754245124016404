// What a plug-in answers when it is asked what it does: the column of docs/devices.md, which ../device_table_test.py
// makes of it.
#pragma once

#include <ostream>

#include "rig.hpp"

namespace rosin::conformance {

/// A line for each feature: its name, a tab, the answer.
void print_features(Rig& rig, std::ostream& out);

}  // namespace rosin::conformance

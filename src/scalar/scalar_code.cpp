// See scalar_code.hpp.
#include "scalar/scalar_code.hpp"

#include <algorithm>

namespace rosin {

uint16_t append(ScalarCode& code, const Instruction& instruction) {
  const auto found = std::find(code.list.begin(), code.list.end(), instruction);
  const auto place = static_cast<uint16_t>(found - code.list.begin());
  if (found == code.list.end()) code.list.push_back(instruction);
  return place;
}

}  // namespace rosin

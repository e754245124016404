// The nearest of several names, for messages that say what was probably meant.
#pragma once

#include <span>
#include <string_view>

namespace rosin {

/// The name that `wrong` becomes with the fewest letters inserted, left out or changed (case aside), or an empty view
/// when even that one differs in more than a third of its letters.
std::string_view nearest_name(std::string_view wrong, std::span<const std::string_view> names);

/// Whether two names agree but for the case of their letters (ASCII).
bool equal_without_case(std::string_view a, std::string_view b);

}  // namespace rosin

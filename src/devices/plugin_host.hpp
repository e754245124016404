// What rosin does for plug-ins: notices, and a cache on disk. Read first: include/rosin/backend.h (rosin_host).
#pragma once

#include <string>

#include <rosin/backend.h>

namespace rosin {

/// The services for one plug-in, which stay for ever.
const rosin_host& host_for(const rosin_backend& functions);

/// The functions of a plug-in in a table of this version's size, which stays for ever: what a smaller one lacks, and
/// what belongs to something that it lacks, is null.
const rosin_backend* whole_table(const rosin_backend& given);

}  // namespace rosin

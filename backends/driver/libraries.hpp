// Where the libraries of a vendor are looked for, opened at run time; nothing is linked. Read next: driver.hpp.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace rosin::driver {

/// What the environment says; nothing in a program that runs with more rights than its user has: what it opens is not
/// the user's to say.
std::string variable(const char* name);

/// A library that is open, or the reason why it is not: which names were tried, and where.
struct Library {
  void* handle = nullptr;
  std::string reason;

  /// The function of that name, or null.
  void* find(const char* name) const;
};

/// Where a vendor puts its libraries.
struct Places {
  const char* variable;               // names folders that come first: absolute ones, separated by colons
  std::vector<const char*> toolkits;  // variables that name a toolkit's folder
  const char* inside;                 // its libraries in there
  const char* usual;                  // where it is when no variable says so
  const char* package;                // the folder of its Python packages, with lib/ in it or in each one of it
};

/// The reason why something of a vendor is not there, with the folders of the variable that are none: what was meant to
/// be found in them was looked for elsewhere.
std::string with_folders(const Places& places, std::string reason);

/// Opens the first of these file names that is found: in the folders of the variable, where the system's loader looks,
/// in the toolkit, and among the packages of Python.
Library open_library(const Places& places, const std::vector<std::string>& names);

/// The same for a driver's library, which belongs to the system: it is not looked for in toolkits and packages. Its
/// names may be paths, whose last part is looked for in the folders.
Library open_driver_library(const Places& places, const std::vector<std::string>& names);

}  // namespace rosin::driver

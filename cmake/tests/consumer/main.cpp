// Doubles an array through the installed library and prints the sum of the result, 12.
#include <cstdio>

#include <rosin/rosin.hpp>

int main() {
  rosin::Array x({1.0f, 2.0f, 3.0f}, {3});
  std::printf("%g\n", rosin::sum(x * 2).item());
}

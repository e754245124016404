// 01: arrays. Values, column-major, counted from 0; ops are recorded and run when a value is read.
// Last line: total 21
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

int main() {
  // Two rows, three columns; the elements come column by column.
  const Array w({1.0f, 2.0f, 3.0f, 4.0f, 5.0f, 6.0f}, {2, 3});
  std::cout << w << "\n";

  // `*` is elementwise and broadcasts; the matrix product has a name.
  const Array scaled = w * 10 + 1;
  const Array product = matmul(w, ones({3}));  // (2, 3) x (3) -> (2)
  std::cout << scaled << "\n" << product << "\n";

  // Negative places count from the end; ranges leave their last number out.
  std::cout << "corner " << w.item(-1, -1) << ", second column " << column(w, 1) << "\n";
  std::cout << "first two columns " << index(w, {slice(), slice(0, 2)}) << "\n";

  // Reductions keep reduced dims with size 1; without dims they give one number.
  std::cout << "sums of rows " << sum(w, 1) << ", mean " << mean(w) << "\n";

  // Copying an array copies a handle; arrays never change.
  const Array same_values = w;
  std::cout << "the same value object: " << (same(w, same_values) ? "yes" : "no") << "\n";

  std::cout << "total " << sum(product).item() << "\n";
}

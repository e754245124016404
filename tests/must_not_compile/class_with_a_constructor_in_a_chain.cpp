// says: rosin: the members of a class with constructors cannot be found; state their number inside it
#include <rosin/chain.hpp>
#include <rosin/dense.hpp>

class Closed {
 public:
  Closed() {}
  rosin::Array operator()(const rosin::Array& x) const { return x; }

 private:
  rosin::Array weight;
};
rosin::Chain use() { return rosin::Chain(rosin::Dense(2, 2), Closed()); }

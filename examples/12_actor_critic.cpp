// 12: structs of your own. An aggregate needs nothing; a class with constructors or private members says what is to be
// walked, or is left alone, with one warning.
// Last line: moved 2, left alone 2, moved 1, trained 1
#include <rosin/rosin.hpp>

#include <iostream>

using namespace rosin;

struct ActorCritic {
  Array actor = ones({2, 2});
  Array critic = ones({2});
};

/// Says nothing about itself.
class Closed {
 public:
  Closed() : actor_(ones({2, 2})), critic_(ones({2})) {}
  const Array& actor() const { return actor_; }
  const Array& critic() const { return critic_; }

 private:
  Array actor_, critic_;
};

/// Is walked in part: the critic is neither moved nor trained nor saved.
struct ActorOnly : ActorCritic {
  ActorOnly() = default;
  static constexpr auto rosin_fields = fields<&ActorOnly::actor>{};
};

/// Is moved as a whole, but only the actor is trained.
struct TrainedActor {
  Array actor = ones({2, 2});
  Array critic = ones({2});
  static constexpr auto rosin_trainable = fields<&TrainedActor::actor>{};
};

// f makes arrays twice as large, so that what it reached can be seen on a machine without a GPU too.
bool reached(const Array& x) { return maximum(x).item() == 2; }

int main() {
  const auto f = [](const Array& x) { return gpu(2 * x); };

  const ActorCritic open = fmap(f, ActorCritic());
  std::cout << "open: actor on " << open.actor.device() << ", critic on " << open.critic.device() << "\n";

  const Closed closed = fmap(f, Closed());
  std::cout << "closed: actor on " << closed.actor().device() << ", critic on " << closed.critic().device() << "\n";

  const ActorOnly part = fmap(f, ActorOnly());
  std::cout << "in part: actor on " << part.actor.device() << ", critic on " << part.critic.device() << "\n";

  // A model taken apart and put together again; its fields have names.
  const auto [parts, rebuild] = functor_of(open);
  std::cout << "fields: " << std::get<0>(parts).name << ", " << std::get<1>(parts).name << "\n";
  const ActorCritic again = rebuild(std::tuple{open.actor, open.critic});

  std::cout << "moved " << reached(again.actor) + reached(again.critic) << ", left alone "
            << !reached(closed.actor()) + !reached(closed.critic()) << ", moved "
            << reached(part.actor) + reached(part.critic) << ", trained " << trainables(TrainedActor()).size() << "\n";
}

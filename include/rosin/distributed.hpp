// Data-parallel training: processes that each hold the whole model and see a part of the data. One program runs alone,
// under mpiexec, Slurm or `rosin run -n 4 ./program`. Read next: docs/distributed.md, comm.h (transports).
//
//   distributed::initialize();                                        // whatever started this process
//   auto backend = distributed::get_distributed_backend();
//   auto model = distributed::synchronize(backend, distributed::FluxDistributedModel(MLP{}));
//   auto state = setup(distributed::Optimizer(backend, Adam{.eta = 1e-3}), model);
//   auto loader = DataLoader(distributed::DataContainer(backend, std::tuple{X, Y}), {.batchsize = 64});
//
// Every rank calls what is collective (all that takes a backend, but for local_rank, total_workers and DataContainer)
// in the same order. Errors of all of it (distributed): a rank is gone, did not come in time or did something else; the
// text names it as far as the transport knows. What follows on that backend fails too.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <rosin/array.hpp>
#include <rosin/copy.hpp>
#include <rosin/data.hpp>
#include <rosin/export.hpp>
#include <rosin/loader.hpp>
#include <rosin/normalise_layers.hpp>
#include <rosin/optim.hpp>
#include <rosin/rule.hpp>
#include <rosin/show.hpp>
#include <rosin/walk.hpp>

namespace rosin::distributed {

class Group;

/// How elements of several ranks become one. Sums of half types are made in Float32 and rounded once; integers wrap
/// around; an average is the sum divided by the number of ranks (floating types only).
enum class Reduction : uint8_t { sum, product, minimum, maximum, average };
inline constexpr Reduction avg = Reduction::average;

/// The processes that train together, as a value; of get_distributed_backend.
class ROSIN_API Backend {
 public:
  /// "MPI": the name of the transport.
  std::string_view name() const;
  /// For the library.
  explicit Backend(Group* group) noexcept : group_(group) {}
  Group& group() const noexcept { return *group_; }

 private:
  Group* group_;  // lives as long as the process
};

/// Over MPI: Open MPI or MPICH, whichever the launcher belongs to; opened at run time.
struct MPIBackend : Backend {
  static constexpr std::string_view transport = "MPI";
};
/// Over NVIDIA's NCCL, opened at run time; each rank takes a CUDA device. What is not on it goes over the transport of
/// the launcher.
struct NCCLBackend : Backend {
  static constexpr std::string_view transport = "NCCL";
};
/// Processes of one machine over shared memory, started by `rosin run`; nothing is to be installed.
struct LocalBackend : Backend {
  static constexpr std::string_view transport = "local";
};
/// Processes that meet at the address in ROSIN_MASTER (host:port of rank 0), as ROSIN_RANK of ROSIN_WORLD_SIZE: no
/// launcher is needed. All goes through rank 0.
struct TCPBackend : Backend {
  static constexpr std::string_view transport = "TCP";
};
/// That of the launcher: local under `rosin run`, TCP where ROSIN_MASTER is set, MPI under mpiexec and srun, else local
/// with one rank.
struct LaunchedBackend : Backend {
  static constexpr std::string_view transport = "";
};
template <class B>
concept BackendType = std::is_base_of_v<Backend, B> && !std::is_same_v<Backend, B>;

struct InitializeOptions {
  /// The id of the GPU that each rank takes, by rank. Empty: the rank among those of its machine modulo the number of
  /// GPUs of the back end that gpu_device() would take.
  std::vector<int> devices = {};
  /// Seconds that a rank waits for the others, here and in every collective; 0: for ever. They may differ by as much in
  /// their work.
  double timeout = 60;
};

namespace detail {

ROSIN_API bool initialized(std::string_view transport);
ROSIN_API void initialize(std::string_view transport, const InitializeOptions& options);
ROSIN_API Group* group_of(std::string_view transport);

}  // namespace detail

/// Joins the other processes, waiting for them, and makes gpu_device() this rank's GPU where there are any. Doing it
/// again does nothing. Errors (distributed): the transport is not there, or a library that it needs; a rank did not
/// come; (argument) a negative timeout, a list of devices that has none for this rank.
template <BackendType B = LaunchedBackend> void initialize(const InitializeOptions& options = {}) {
  detail::initialize(B::transport, options);
}
template <BackendType B = LaunchedBackend> bool initialized() { return detail::initialized(B::transport); }
/// Error (distributed): it is not initialized.
template <BackendType B = LaunchedBackend> B get_distributed_backend() {
  return B{Backend(detail::group_of(B::transport))};
}

/// The number of this process among all, from 0. (The name is Flux's; it is not the rank among those of a machine.)
ROSIN_API int local_rank(const Backend& backend);
ROSIN_API int total_workers(const Backend& backend);

/// Writes the preference mpi_gpu_aware into LocalPreferences.toml: whether MPI is given arrays of GPUs as they lie
/// there, where it takes them, instead of copies in the host's memory. Programs that start from now on read it;
/// ROSIN_MPI_GPU_AWARE goes before it. `rosin ranks` under mpiexec says what MPI takes. Errors (io): the file cannot be
/// written; (argument): it is malformed.
ROSIN_API void set_mpi_gpu_aware(bool aware);

// --- Arrays. Results are fresh arrays on the device of x, and constants to gradients. x has one type and shape on all
// ranks.

struct RootOptions {
  int root = 0;
};
/// The root's x, on every rank.
ROSIN_API Array bcast(const Backend& backend, const Array& x, RootOptions options = {});
/// All ranks' x, element by element; the same bits on every rank and in every run.
ROSIN_API Array allreduce(const Backend& backend, const Array& x, Reduction reduction);
/// The same on the root alone; other ranks get their own x.
ROSIN_API Array reduce(const Backend& backend, const Array& x, Reduction reduction, RootOptions options = {});
/// The x (..., n) of all ranks side by side, (..., ranks * n); 0-d arrays as a vector.
ROSIN_API Array allgather(const Backend& backend, const Array& x);
/// Part number local_rank of the reduced x, whose last dim is cut into as many equal parts as there are ranks.
ROSIN_API Array reduce_scatter(const Backend& backend, const Array& x, Reduction reduction);
/// Returns when every rank has come.
ROSIN_API void barrier(const Backend& backend);
/// Makes the other ranks' collectives fail with this text, for a rank that cannot go on.
ROSIN_API void abort(const Backend& backend, std::string_view why);

// --- Models and states.

/// A model that is to be synchronized.
template <class M> struct FluxDistributedModel {
  M model;
};
template <class M> FluxDistributedModel(M) -> FluxDistributedModel<M>;

namespace detail {

ROSIN_API void synchronize_arrays(const Backend& backend, ModelEdit model, int root);
ROSIN_API void synchronize_bytes(const Backend& backend, void* value, size_t bytes, int root);
ROSIN_API void check_synchronized(const Backend& backend, ModelView model);

}  // namespace detail

/// The root's arrays, running statistics and numbers in a model, a state, or anything that is walked; generators,
/// enums, functions and strings are each rank's own. Error (distributed): it has other arrays or numbers than the
/// root's, by place, type or shape; the first that differs is named.
template <Walkable M> M synchronize(const Backend& backend, const M& x, RootOptions options = {}) {
  M copy = copy_of(x);
  detail::synchronize_arrays(backend, copy, options.root);
  return copy;
}
template <Walkable M>
M synchronize(const Backend& backend, const FluxDistributedModel<M>& wrapped, RootOptions options = {}) {
  return synchronize(backend, wrapped.model, options);
}
/// The root's number.
template <class T>
  requires std::is_arithmetic_v<T>
T synchronize(const Backend& backend, T x, RootOptions options = {}) {
  detail::synchronize_bytes(backend, &x, sizeof x, options.root);
  return x;
}

/// Compares the arrays of a model, a state, or anything that is walked between all ranks, bit by bit, by a hash of
/// each: a pass over them and a small message. Error (distributed) on every rank where one has another; the first that
/// differs is named. What training leaves out of step (a rank that skipped a batch, a buffer of its own) is found early
/// by a call every few hundred steps.
template <Walkable M> void check_synchronized(const Backend& backend, const M& x) {
  detail::check_synchronized(backend, x);
}

// --- Training.

/// What a step does with running statistics, such as those of BatchNorm.
enum class Statistics : uint8_t {
  own,      // each rank has those of its own batches
  averaged  // after each step all ranks have the average
};

struct OptimizerOptions {
  /// The type in which gradients of floating types are sent and summed: BFloat16 halves what is sent of Float32, and
  /// each of its sums is rounded to 8 bits. Nothing: their own.
  std::optional<DType> dtype = {};
  /// Each rank keeps the state of its share of the parameters only, and makes their steps for all: of N ranks, each
  /// needs about 1 / N of the memory of the state. Shares are balanced by bytes: parameters of 64 KiB and more are
  /// divided, the largest first, as long as a rank has more than a tenth above the average, where the rule moves each
  /// element by itself (rule.hpp); others stay whole. The weights are those of a training without. Source: Rajbhandari
  /// et al.: ZeRO (2020), stage 1.
  bool shard = false;
  Statistics statistics = Statistics::own;
};

namespace detail {

/// Error (argument): a type that gradients cannot be sent in.
ROSIN_API void check_options(const OptimizerOptions& options);
/// Error (argument): gradients that are shared out under a rule that looks at all of them.
ROSIN_API void check_whole(const OptimizerOptions& options);
/// Error (argument): options of a rule that stands inside another one, but are of the outermost.
ROSIN_API void check_inside(const OptimizerOptions& options);
/// See Optimizer.
ROSIN_API void exchange(const Backend& backend, std::span<rosin::detail::NamedGradient> gradients,
                        const OptimizerOptions& options);
ROSIN_API void exchange_statistics(const Backend& backend, std::span<rosin::detail::NamedGradient> written,
                                   const OptimizerOptions& options);
ROSIN_API rosin::detail::Sharing* sharing(const Backend& backend, const OptimizerOptions& options) noexcept;
/// The average of one gradient, unless the step has exchanged all of them.
ROSIN_API Array averaged(const Backend& backend, const Array& gradient, const OptimizerOptions& options);
/// How they show: "MPI backend", and the options that are chosen.
ROSIN_API void show(const Backend& backend, RuleVisitor& visitor);
ROSIN_API void show(const OptimizerOptions& options, RuleVisitor& visitor);

}  // namespace detail

/// A rule that is given the average of the gradients of all ranks. They are summed together, in few large messages,
/// before the first parameter changes; each rank then makes the same step. Every rank must have gradients of the same
/// parameters: what differs is an Error (distributed) that names the first parameter and leaves the model as it was.
/// Averages of means over equal shares are the mean over all. In an OptimiserChain or MixedPrecision it averages what
/// the rules before it give, just so: AccumGrad in front sends every n-th sum only. Inside another rule it goes
/// parameter by parameter.
template <Rule R> struct Optimizer {
  Backend backend;
  R rule;
  OptimizerOptions options;
  static constexpr bool elementwise = reflect::is_elementwise<R>();

  static_assert(!reflect::ExchangesInside<R> || !reflect::ScalesGradients<R>,
                "rosin: rules before ClipGlobalNorm stand before distributed::Optimizer too, in an OptimiserChain");

  Optimizer(const Backend& of, R inner, const OptimizerOptions& chosen = {})
      : backend(of), rule(std::move(inner)), options(chosen) {}

  auto init(const Array& x) const { return rule.init(x); }
  auto apply(RuleState<R>& state, const Array& x, const Array& g) const
    requires reflect::GivesStep<R>
  {
    return rule.apply(state, x, detail::averaged(backend, g, options));
  }
  Array moved(RuleState<R>& state, const Array& x, const Array& g) const
    requires reflect::GivesStep<R>
  {
    return reflect::moved(rule, state, x, detail::averaged(backend, g, options));
  }
  Array replace(RuleState<R>& state, const Array& x, const Array& g) const
    requires reflect::ReplacesParameter<R>
  {
    return rule.replace(state, x, detail::averaged(backend, g, options));
  }
  void exchange(std::span<rosin::detail::NamedGradient> gradients) const {
    detail::exchange(backend, gradients, options);
    if constexpr (reflect::ScalesGradients<R>) rule.exchange(gradients);
  }
  void exchange_statistics(std::span<rosin::detail::NamedGradient> written) const {
    detail::exchange_statistics(backend, written, options);
  }
  rosin::detail::Sharing* sharing() const { return detail::sharing(backend, options); }
  void visit_rules(RuleVisitor& visitor) {
    detail::show(backend, visitor);
    reflect::describe(rule, visitor);
    detail::show(options, visitor);
  }
  void check() const {
    reflect::check_inside(rule);
    detail::check_options(options);
    if constexpr (reflect::ScalesGradients<R>) detail::check_whole(options);
  }
  void check_inside() const { detail::check_inside(options); }
};

/// A state of Optimizer{.shard = true} with the parts of all ranks, which come to the memory of the host: what a file
/// is made of, and what update takes as if it were not shared out. Other states as they are. Every rank calls it.
/// (save() of a state that is shared out writes the arrays of this rank's part.)
ROSIN_API State gathered(const State& state);
/// The way back: what this rank keeps of such a state. It may have been gathered by another number of ranks. Error
/// (argument): its rule is no Optimizer{.shard = true}.
ROSIN_API State sharded(const State& state);
/// The root's state. Of one that is shared out every part is one rank's alone: it stays as it is.
ROSIN_API State synchronize(const Backend& backend, const State& state, RootOptions options = {});
/// Of a state that is shared out there is nothing to compare.
ROSIN_API void check_synchronized(const Backend& backend, const State& state);

/// The sum of all ranks' x, as allreduce gives it, that gradients pass: the gradient by x is the sum of all ranks'
/// gradients. Every rank calls it, and takes a gradient of it, as often as the others.
ROSIN_API Array sum_over_ranks(const Backend& backend, const Array& x);

/// BatchNorm by the statistics, in training, of all ranks' batches, which may be empty. Source: torch.nn.SyncBatchNorm.
ROSIN_API BatchNorm SyncBatchNorm(const Backend& backend, int64_t channels, Activation activation = {},
                                  const BatchNormOptions& options = {});

// --- Data.

namespace detail {

/// The observations of a rank: ceil(n / ranks) each, the last ones fewer or none.
ROSIN_API std::vector<int64_t> shard(const Backend& backend, int64_t n);

}  // namespace detail

/// This rank's part of every batch of a DataLoader, whose batch size is that of all ranks together: `DataLoader(data,
/// {.batchsize = 256, .shuffle = true, .rng = Rng{7}, .part = distributed::batch_part(backend)})`. With the same
/// generator on every rank each observation is given once an epoch, by one of them, in the batch in which a single
/// process would give it. A last batch of fewer observations than ranks leaves some with none: `.partial = false`.
inline BatchPart batch_part(const Backend& backend) { return {local_rank(backend), total_workers(backend)}; }

/// This rank's share of data, as a view: observations r * s ... min((r + 1) * s, n) - 1 of n, where s = ceil(n /
/// ranks). The last ranks may have fewer, or none.
template <Observations Data> class DataContainer : public ObsView<Data> {
 public:
  DataContainer(const Backend& backend, const Data& data)
      : ObsView<Data>(data, detail::shard(backend, rosin::numobs(data))) {}
};

/// "MPI backend: rank 0 of 2".
ROSIN_API std::string to_string(const Backend& backend);
template <TextStream Stream> Stream& operator<<(Stream& stream, const Backend& backend) {
  return stream << show(backend);
}

}  // namespace rosin::distributed

template <class Data>
  requires rosin::Walkable<Data> && rosin::reflect::TupleLike<Data>
struct std::tuple_size<rosin::distributed::DataContainer<Data>> : std::tuple_size<Data> {};
template <size_t i, class Data>
  requires rosin::Walkable<Data> && rosin::reflect::TupleLike<Data>
struct std::tuple_element<i, rosin::distributed::DataContainer<Data>> : std::tuple_element<i, Data> {};

// Tests of streams and tickets: what waits for what. Those of devices run in a process of their own, whose device holds
// a launch until something is copied out (hold=N in backends/reference/options.hpp): who waited for more than it needs
// would end as a fault of the device.
#include "run/device_stream.hpp"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <rosin/create.hpp>
#include <rosin/device.hpp>
#include <rosin/elementwise.hpp>
#include <rosin/error.hpp>
#include <rosin/host_vector.hpp>
#include <rosin/move.hpp>
#include <rosin/stats.hpp>

#include "../tests/run_itself.hpp"
#include "graph/node.hpp"
#include "run/device_table.hpp"

namespace rosin {
namespace {

using Values = std::vector<float>;

TEST(Tickets, AFreshOneStandsForNothingWhichIsOver) {
  EXPECT_TRUE(is_over(Ticket()));
  EXPECT_EQ(Ticket(), Ticket(0, 0));
}

TEST(Tickets, KnowTheirStreamAndTheirNumber) {
  const uint64_t many = (uint64_t{1} << 48) - 1;
  for (const uint64_t number : {uint64_t{1}, uint64_t{70000}, many}) {
    const Ticket ticket(most_streams - 1, number);
    EXPECT_EQ(ticket.stream(), most_streams - 1);
    EXPECT_EQ(ticket.number(), number);
    EXPECT_FALSE(is_over(ticket)) << "that stream has never been made";
  }
  EXPECT_EQ(Stream::index_of(255, StreamKind::communication), most_streams - 5);
}

Device reference() { return get_device("reference", 0).with(keep); }
OpenDevice& opened() { return DeviceTable::instance().open(reference().position()); }
DeviceBlock& block_of(const Array& x) { return static_cast<DeviceBlock&>(*x.node()->buffer); }

/// On the device; launches come with what is computed of it.
Array there(const Values& values) { return Array(values, {static_cast<int64_t>(values.size())}) | reference(); }

TEST(DISABLED_Inside, ReadsBesideALaunch) {
  const Array x = there({1, 2, 3});
  const Array loss = x * 2;
  eval(loss);  // launch 0
  const Array later = loss + x;
  eval(later);  // launch 1, which is held
  EXPECT_FALSE(is_over(block_of(later).written_by));
  EXPECT_EQ(loss.to_vector(), (Values{2, 4, 6}));
  EXPECT_EQ(later.to_vector(), (Values{3, 6, 9}));
  EXPECT_TRUE(opened().compute().has_ended(block_of(later).written_by));
}

TEST(DeviceStreams, ReadingAValueWaitsForThatValueAlone) {
  expect_success(run_itself("ReadsBesideALaunch", "ROSIN_REFERENCE=hold=1"));
}

TEST(DISABLED_Inside, ReadsOfAnotherThread) {
  const Array x = there({1, 2, 3});
  const Array ready = x * 2;
  ready.to_vector();  // launch 0
  const Array later = x + 1;
  eval(later);  // launch 1, which is held
  Values seen;
  std::thread([&] { seen = ready.to_vector(); }).join();
  EXPECT_EQ(seen, (Values{2, 4, 6}));
  EXPECT_EQ(later.to_vector(), (Values{2, 3, 4}));
}

TEST(DeviceStreams, AnotherThreadReadsWhatIsReadyWhileWorkIsUnderWay) {
  expect_success(run_itself("ReadsOfAnotherThread", "ROSIN_REFERENCE=hold=1"));
}

TEST(DISABLED_Inside, CopiesBesideALaunch) {
  const Array x = there({1, 2, 3});
  const Array y = x + 1;
  eval(y);                                                // launch 0, which is held
  const Array other = there({4, 5, 6, 7, 8});             // in
  EXPECT_EQ(other.to_vector(), (Values{4, 5, 6, 7, 8}));  // and out
  EXPECT_EQ(y.to_vector(), (Values{2, 3, 4}));
}

TEST(DeviceStreams, CopiesBothWaysPassALaunchThatIsUnderWay) {
  expect_success(run_itself("CopiesBesideALaunch", "ROSIN_REFERENCE=hold=0"));
}

TEST(DISABLED_Inside, FreedMemory) {
  const Array witness = there(Values(100, 7));
  Array x = there({1, 2, 3});
  void* const memory = x.node()->buffer->data;
  const Array y = x + 1;
  eval(y);  // launch 0, which is held, reads x
  x = Array();
  const Array fresh = there({9, 9, 9});
  EXPECT_EQ(fresh.node()->buffer->data, memory) << "freed memory is used again";
  EXPECT_EQ(witness.to_vector(), Values(100, 7));  // lets the launch go
  EXPECT_EQ(y.to_vector(), (Values{2, 3, 4}));
  EXPECT_EQ(fresh.to_vector(), (Values{9, 9, 9}));
}

TEST(DeviceStreams, FreedMemoryIsWrittenBehindTheWorkThatReadsIt) {
  expect_success(run_itself("FreedMemory", "ROSIN_REFERENCE=hold=0"));
}

TEST(DISABLED_Inside, FreedWhileItIsRead) {
  const Values many(3 << 20, 1);  // several pieces of a copy
  Array x = there(many);
  for (int round = 0; round < 3; ++round) {
    void* const memory = x.node()->buffer->data;
    Values read;
    std::thread reader([&, copy = x]() mutable { read = copy.to_vector(); });
    x = Array();
    reader.join();
    Array fresh = there(Values(many.size(), 2));
    EXPECT_EQ(fresh.node()->buffer->data, memory);
    const Array changed = fresh - 1;
    eval(changed);
    EXPECT_EQ(read, many);
    x = changed;
  }
}

TEST(DeviceStreams, MemoryIsFreedWhileItIsCopiedOut) {
  expect_success(run_itself("FreedWhileItIsRead", "ROSIN_REFERENCE=devices=1"));
}

/// What a collective does: reads what a run writes, and writes what a run reads, on the stream for communication.
TEST(DISABLED_Inside, Communicates) {
  const Array witness = there(Values(100, 7));
  const Array x = there({1, 2, 3});
  const Array target = there({0, 0, 0});
  const Array sum = x + 1;
  eval(sum);  // launch 0, which is held
  OpenDevice& device = opened();
  DeviceStream& stream = device.stream(StreamKind::communication);
  Ticket sent;
  {
    const DeviceStream::Turn turn(stream);
    stream.order_to_read(block_of(sum));
    stream.order_to_write(block_of(target));
    const auto place = [](const Array& a) { return rosin_place{static_cast<rosin_memory*>(block_of(a).data), 0}; };
    device.check(device.functions.copy(stream.queue(), place(target), place(sum), 3 * sizeof(float)), "send");
    sent = stream.record();
    stream.has_read(block_of(sum), sent);
    stream.has_written(block_of(target), sent);
  }
  EXPECT_FALSE(stream.has_ended(sent));
  const Array result = target * 10;
  eval(result);
  EXPECT_EQ(witness.to_vector(), Values(100, 7));  // lets the launch go
  EXPECT_EQ(result.to_vector(), (Values{20, 30, 40}));
  EXPECT_TRUE(is_over(sent) || stream.has_ended(sent));
}

TEST(DeviceStreams, CommunicationRunsBesideTheOthersAndBehindWhatItReads) {
  expect_success(run_itself("Communicates", "ROSIN_REFERENCE=hold=0"));
}

class OwnDevice : public testing::Test {
 protected:
  void SetUp() override {
    if (!functional("reference")) GTEST_SKIP() << why_not("reference");
  }
};

TEST_F(OwnDevice, TicketsGoRoundTheirRingOfEvents) {
  DeviceStream& stream = opened().stream(StreamKind::communication);
  std::vector<Ticket> tickets;
  for (int i = 0; i < 500; ++i) {
    const DeviceStream::Turn turn(stream);
    tickets.push_back(stream.record());
  }
  EXPECT_EQ(tickets.back(), stream.last());
  for (const size_t i : {499u, 0u, 250u, 440u}) {
    stream.wait(tickets[i]);
    EXPECT_TRUE(is_over(tickets[i]));
  }
}

TEST_F(OwnDevice, ThreadsWaitForTicketsThatOthersDraw) {
  DeviceStream& stream = opened().stream(StreamKind::communication);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        Ticket ticket;
        {
          const DeviceStream::Turn turn(stream);
          ticket = stream.record();
        }
        stream.wait(ticket);
        EXPECT_TRUE(is_over(ticket));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(OwnDevice, LargeCopiesGoThroughInPieces) {
  Values values(5'000'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000);
  EXPECT_EQ((there(values) + 1).to_vector()[4'999'999], 1000);
  EXPECT_EQ(there(values).to_vector(), values);
}

}  // namespace
}  // namespace rosin

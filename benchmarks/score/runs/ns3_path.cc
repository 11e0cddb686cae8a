// SPDX-License-Identifier: Apache-2.0
//
// A transfer between two hosts of ns-3 over a router, for ns3_run.py, which compiles this file with
// cling.
//
//     sender ── first link ── router ── second link ── receiver
//
// Hosts and queues are those of ns-3. An Impairment stands at the receiving end of each link and
// direction: it drops, delays and duplicates packets and logs the fate of each. Captures are
// written at the sender, at the left device of the router and at the receiver, where the packets
// pass the wire. The socket of each connection logs the cause of each retransmission, which is the
// congestion state in which it was sent.

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"

#include <cstdio>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace score {

using namespace ns3;

constexpr uint64_t EPOCH_S = 1700000000; // when the simulation starts
constexpr uint32_t SNAPLEN = 128, PPP = 2, ETHERNET = 14;
constexpr uint16_t PORT = 41900;
constexpr int64_t HOLD_NS = 20000000; // the longest wait of a packet for those that overtake it
constexpr int64_t COPY_NS = 2000000;  // how much later a duplicate comes
constexpr const char *NO_LIMIT = "100000p";

// One direction of a link. Times are seconds since the first connection attempt.
struct Wire {
    double loss = 0, burst_begins = 0, burst_ends = 1, reorder = 0, duplicate = 0; // probabilities
    uint32_t distance = 0; // packets that overtake a delayed one
    std::vector<std::pair<double, double>> outages, stalls;
};

struct Link {
    std::string rate, delay; // as ns-3 writes them
    Wire wires[2];           // towards the receiver and back
};

struct Order {
    std::string folder;
    Link links[2];
    std::string queue;   // of the second link towards the receiver
    std::string control; // name of a class of ns-3
    bool sack = true, timestamps = true;
    uint32_t connections = 1, parallel = 1, receive_buffer = 0;
    uint64_t bytes = 0, chunk = 0;
    double pause = 0, least_rto = 1; // s
    uint32_t seed = 1;
};

constexpr double BEGIN = 0.5; // s, when the first connection is attempted

// Drops, delays and duplicates the packets that a device receives.
class Impairment : public ErrorModel {
  public:
    void Place(Ptr<PointToPointNetDevice> device, const Wire &wire, int direction, FILE *log,
               uint32_t seed) {
        m_device = device, m_wire = wire, m_direction = direction, m_log = log;
        m_chance.seed(seed);
        device->SetReceiveErrorModel(this);
    }

    void Note(const char *fate, int copies) {
        std::fprintf(m_log, "%llu,6,%d,%s,%d\n", (unsigned long long)m_index++, m_direction, fate,
                     copies);
    }

    void NoteQueueDrop(Ptr<const Packet>) {
        Note("queue", 0);
    }

  private:
    bool Happens(double probability) {
        return probability > 0 && m_uniform(m_chance) < probability;
    }

    static double EndOf(const std::vector<std::pair<double, double>> &spans) {
        double now = Simulator::Now().GetSeconds() - BEGIN;
        for (const auto &span : spans)
            if (now >= span.first && now < span.second)
                return span.second - now;
        return 0;
    }

    const char *Loss() {
        m_bad = m_bad ? !Happens(m_wire.burst_ends) : Happens(m_wire.burst_begins);
        if (EndOf(m_wire.outages) > 0)
            return "outage";
        return m_bad || Happens(m_wire.loss) ? "loss" : nullptr;
    }

    bool DoCorrupt(Ptr<Packet> packet) override {
        if (m_released)
            return false;
        if (const char *fate = Loss()) {
            Note(fate, 0);
            return true;
        }
        if (double wait = EndOf(m_wire.stalls); wait > 0) {
            Note("delivered", 1);
            ReleaseIn(NanoSeconds((int64_t)(wait * 1e9) + ++m_stalled), packet->Copy());
            return true;
        }
        if (!m_held && Happens(m_wire.reorder)) {
            Note("delivered", 1);
            m_held = packet->Copy();
            m_left = m_wire.distance;
            m_timer = Simulator::Schedule(NanoSeconds(HOLD_NS), &Impairment::ReleaseHeld, this);
            return true;
        }
        bool twice = Happens(m_wire.duplicate);
        Note("delivered", twice ? 2 : 1);
        if (twice)
            ReleaseIn(NanoSeconds(COPY_NS), packet->Copy());
        if (m_held && --m_left == 0) {
            m_timer.Cancel();
            Simulator::Schedule(NanoSeconds(1000), &Impairment::ReleaseHeld, this);
        }
        return false;
    }

    void ReleaseIn(Time wait, Ptr<Packet> packet) {
        Simulator::Schedule(wait, &Impairment::Release, this, packet);
    }

    void Release(Ptr<Packet> packet) {
        m_released = true;
        m_device->Receive(packet);
        m_released = false;
    }

    void ReleaseHeld() {
        if (m_held)
            Release(std::exchange(m_held, nullptr));
    }

    void DoReset() override {}

    Ptr<PointToPointNetDevice> m_device;
    Wire m_wire;
    int m_direction = 0;
    FILE *m_log = nullptr;
    uint64_t m_index = 0;
    int64_t m_stalled = 0;
    bool m_bad = false, m_released = false;
    Ptr<Packet> m_held;
    uint32_t m_left = 0; // packets that still overtake the held one
    EventId m_timer;
    std::mt19937 m_chance;
    std::uniform_real_distribution<double> m_uniform;
};

// A capture file: little-endian pcap with nanoseconds and Ethernet, as the testbed of the Linux
// runs writes it.
class Capture {
  public:
    Capture(const std::string &path, Ptr<NetDevice> device)
        : m_file(std::fopen(path.c_str(), "wb")) {
        NS_ABORT_MSG_UNLESS(m_file, path << ": not writable");
        const uint32_t header[] = {0xa1b23c4d, 4 << 16 | 2, 0, 0, SNAPLEN, 1};
        std::fwrite(header, sizeof header, 1, m_file);
        for (const char *source : {"PhyTxBegin", "PhyRxEnd"})
            device->TraceConnectWithoutContext(source, MakeCallback(&Capture::Take, this));
    }

    ~Capture() {
        std::fclose(m_file);
    }

  private:
    void Take(Ptr<const Packet> packet) {
        uint8_t frame[ETHERNET + SNAPLEN] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2};
        frame[12] = 8;
        uint8_t data[PPP + SNAPLEN];
        uint32_t copied = packet->CopyData(data, sizeof data) - PPP;
        std::copy(data + PPP, data + PPP + copied, frame + ETHERNET);
        frame[5] = frame[ETHERNET + 19], frame[11] = frame[ETHERNET + 15];
        uint64_t now = Simulator::Now().GetNanoSeconds();
        uint32_t size = packet->GetSize() - PPP + ETHERNET, captured = std::min(size, SNAPLEN);
        const uint32_t record[] = {(uint32_t)(EPOCH_S + now / 1000000000),
                                   (uint32_t)(now % 1000000000), captured, size};
        std::fwrite(record, sizeof record, 1, m_file);
        std::fwrite(frame, captured, 1, m_file);
    }

    FILE *m_file;
};

// A connection of the sender, which writes chunks and logs its retransmissions.
class Connection {
  public:
    Connection(const Order &order, FILE *causes)
        : m_order(order), m_causes(causes), m_left(order.bytes) {}

    void Begin(Ptr<Node> node, Ipv4Address receiver) {
        m_socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        m_socket->TraceConnectWithoutContext("Tx", MakeCallback(&Connection::NoteSent, this));
        m_socket->TraceConnectWithoutContext("CongState",
                                             MakeCallback(&Connection::NoteState, this));
        m_socket->SetConnectCallback(MakeCallback(&Connection::Continue, this),
                                     MakeNullCallback<void, Ptr<Socket>>());
        m_socket->SetSendCallback(MakeCallback(&Connection::HasSpace, this));
        m_socket->Connect(InetSocketAddress(receiver, PORT));
    }

  private:
    void Continue(Ptr<Socket>) {
        m_connected = true;
        NextChunk();
    }

    void NextChunk() {
        m_chunk = std::min(m_left, m_order.chunk);
        Write();
    }

    void HasSpace(Ptr<Socket>, uint32_t) {
        if (m_connected && m_chunk)
            Write();
    }

    void Write() {
        while (m_chunk) {
            auto size = (uint32_t)std::min<uint64_t>({m_chunk, m_socket->GetTxAvailable(), 65536});
            if (!size)
                return;
            m_chunk -= size, m_left -= size; // first, because Send calls HasSpace
            NS_ABORT_UNLESS(m_socket->Send(Create<Packet>(size)) == (int)size);
            if (m_chunk)
                continue;
            if (!m_left)
                m_socket->Close();
            else if (m_order.pause > 0)
                Simulator::Schedule(Seconds(m_order.pause), &Connection::NextChunk, this);
            else
                m_chunk = std::min(m_left, m_order.chunk);
        }
    }

    void NoteState(TcpSocketState::TcpCongState_t, TcpSocketState::TcpCongState_t state) {
        m_state = state;
        m_expired = state == TcpSocketState::CA_LOSS;
    }

    const char *Cause(bool has_data) const {
        if (!has_data || m_state == TcpSocketState::CA_LOSS)
            return "timeout"; // only the timer retransmits a SYN or FIN alone
        return m_state == TcpSocketState::CA_RECOVERY ? "fast" : "";
    }

    void NoteSent(Ptr<const Packet> packet, const TcpHeader &header, Ptr<const TcpSocketBase>) {
        uint32_t start = header.GetSequenceNumber().GetValue(); // the ISN of ns-3 is 0
        uint32_t marks = header.GetFlags() & (TcpHeader::SYN | TcpHeader::FIN);
        uint32_t end = start + packet->GetSize() + (marks ? 1 : 0);
        if (end == start)
            return;
        if (start < m_highest)
            std::fprintf(m_causes, "%u,%s,%d\n", header.GetSourcePort(),
                         Cause(packet->GetSize() > 0), std::exchange(m_expired, false));
        m_highest = std::max(m_highest, end);
    }

    const Order &m_order;
    FILE *m_causes;
    Ptr<Socket> m_socket;
    uint64_t m_left, m_chunk = 0;
    uint32_t m_highest = 0;
    bool m_connected = false, m_expired = false;
    TcpSocketState::TcpCongState_t m_state = TcpSocketState::CA_OPEN;
};

void ReadAll(Ptr<Socket> socket) {
    while (Ptr<Packet> packet = socket->Recv())
        if (!packet->GetSize())
            break;
}

void CloseToo(Ptr<Socket> socket) {
    Simulator::ScheduleNow(&Socket::Close, socket);
}

void Accept(Ptr<Socket> socket, const Address &) {
    socket->SetRecvCallback(MakeCallback(&ReadAll));
    socket->SetCloseCallbacks(MakeCallback(&CloseToo), MakeNullCallback<void, Ptr<Socket>>());
}

void SetUp(const Order &order) {
    GlobalValue::Bind("ChecksumEnabled", BooleanValue(true));
    Config::SetDefault("ns3::TcpL4Protocol::SocketType",
                       TypeIdValue(TypeId::LookupByName("ns3::" + order.control)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize",
                       UintegerValue(order.timestamps ? 1448 : 1460));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(4 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize",
                       UintegerValue(order.receive_buffer ? order.receive_buffer : 4 << 20));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(order.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(order.timestamps));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(Seconds(order.least_rto)));
}

FILE *OpenLog(const Order &order, const std::string &name, const char *head) {
    FILE *file = std::fopen((order.folder + "/" + name).c_str(), "w");
    NS_ABORT_MSG_UNLESS(file, order.folder << "/" << name << ": not writable");
    std::fprintf(file, "%s\n", head);
    return file;
}

// Carries out a run and writes its files into the folder, which must exist.
void Simulate(const Order &order) {
    SetUp(order);
    NodeContainer nodes(3);
    InternetStackHelper stack;
    stack.SetIpv6StackInstall(false);
    stack.Install(nodes);
    NetDeviceContainer devices;
    std::vector<Ptr<Impairment>> impairments;
    FILE *logs[3] = {};
    for (int link = 0; link < 2; link++) {
        PointToPointHelper wire;
        wire.DisableFlowControl(); // without it, ns-3 puts no queue discipline before the queue
        wire.SetDeviceAttribute("DataRate", StringValue(order.links[link].rate));
        wire.SetChannelAttribute("Delay", StringValue(order.links[link].delay));
        wire.SetQueue("ns3::DropTailQueue", "MaxSize", StringValue(NO_LIMIT));
        NetDeviceContainer ends = wire.Install(nodes.Get(link), nodes.Get(link + 1));
        logs[link] = OpenLog(order, "link" + std::to_string(link + 1) + ".csv",
                             "index,protocol,direction,fate,copies");
        for (int direction = 0; direction < 2; direction++) {
            auto made = CreateObject<Impairment>();
            made->Place(ends.Get(1 - direction)->GetObject<PointToPointNetDevice>(),
                        order.links[link].wires[direction], direction, logs[link],
                        order.seed * 4 + link * 2 + direction);
            impairments.push_back(made);
        }
        devices.Add(ends);
        Ipv4AddressHelper addresses(link ? "10.214.2.0" : "10.214.1.0", "255.255.255.0");
        addresses.Assign(ends);
    }
    auto bottleneck = devices.Get(2)->GetObject<PointToPointNetDevice>();
    bottleneck->GetQueue()->SetMaxSize(QueueSize(order.queue));
    bottleneck->TraceConnectWithoutContext(
        "MacTxDrop", MakeCallback(&Impairment::NoteQueueDrop, impairments[2]));
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    Capture captures[] = {{order.folder + "/sender.pcap", devices.Get(0)},
                          {order.folder + "/tracer.pcap", devices.Get(1)},
                          {order.folder + "/receiver.pcap", devices.Get(3)}};
    logs[2] = OpenLog(order, "causes.csv", "port,cause,expiry");
    Ptr<Socket> listening = Socket::CreateSocket(nodes.Get(2), TcpSocketFactory::GetTypeId());
    listening->Bind(InetSocketAddress(Ipv4Address::GetAny(), PORT));
    listening->Listen();
    listening->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address &>(),
                                 MakeCallback(&Accept));
    std::vector<std::unique_ptr<Connection>> connections;
    for (uint32_t number = 0; number < order.connections * order.parallel; number++) {
        connections.push_back(std::make_unique<Connection>(order, logs[2]));
        Simulator::Schedule(
            Seconds(BEGIN + number / order.parallel * 0.5 + number % order.parallel * 0.001),
            &Connection::Begin, connections.back().get(), nodes.Get(0), Ipv4Address("10.214.2.2"));
    }
    Simulator::Stop(Seconds(900));
    Simulator::Run();
    for (FILE *log : logs)
        std::fclose(log);
    connections.clear();
    Simulator::Destroy();
}

} // namespace score

package dev.millrace.infra.broker;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.kafka.common.Uuid;

/** Cluster and node id of a broker. Every node is broker and controller, with a vote. */
record Membership(int nodeId, String clusterId, List<Voter> voters) {
    private static final int MOST_COPIES = 3;

    /**
     * A node as the others know it.
     *
     * @param controllerPort on the loopback address
     */
    record Voter(int nodeId, int controllerPort, String directoryId) {
        @Override
        public String toString() {
            return nodeId + "@127.0.0.1:" + controllerPort + ":" + directoryId;
        }

        private static Voter parse(String text) {
            String[] parts = text.split("[@:]");
            return new Voter(Integer.parseInt(parts[0]), Integer.parseInt(parts[2]), parts[3]);
        }
    }

    Membership {
        voters = List.copyOf(voters);
    }

    static Membership alone(int controllerPort) {
        return new Membership(
                1,
                Uuid.randomUuid().toString(),
                List.of(new Voter(1, controllerPort, Uuid.randomUuid().toString())));
    }

    /** One for each node of a new cluster. */
    static List<Membership> ofNewCluster(List<Integer> controllerPorts) {
        List<Voter> voters = new ArrayList<>();
        for (int port : controllerPorts) {
            voters.add(new Voter(voters.size() + 1, port, Uuid.randomUuid().toString()));
        }
        String clusterId = Uuid.randomUuid().toString();
        return voters.stream()
                .map(voter -> new Membership(voter.nodeId(), clusterId, voters))
                .toList();
    }

    /** For a command line; {@link #parse} reads it. */
    String text() {
        return nodeId + "/" + clusterId + "/" + votersText();
    }

    static Membership parse(String text) {
        String[] parts = text.split("/");
        return new Membership(
                Integer.parseInt(parts[0]),
                parts[1],
                List.of(parts[2].split(",")).stream().map(Voter::parse).toList());
    }

    /** As Kafka writes them. */
    String votersText() {
        return voters.stream().map(Voter::toString).collect(Collectors.joining(","));
    }

    String controllers() {
        return voters.stream()
                .map(voter -> "127.0.0.1:" + voter.controllerPort())
                .collect(Collectors.joining(","));
    }

    int controllerPort() {
        return voters.stream()
                .filter(voter -> voter.nodeId() == nodeId)
                .findFirst()
                .orElseThrow()
                .controllerPort();
    }

    boolean isAlone() {
        return voters.size() == 1;
    }

    /** Copies of every partition: one on each node, up to three. */
    int copies() {
        return Math.min(MOST_COPIES, voters.size());
    }

    /** Copies that must have a record before it counts: all but one. */
    int copiesInSync() {
        return Math.max(1, copies() - 1);
    }
}

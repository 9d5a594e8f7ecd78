package dev.millrace.topology.join;

/** Names of the nodes that take what the join gives off. */
public record JoinNodes(String trajectories, String outcomes, String deadLetters) {
}

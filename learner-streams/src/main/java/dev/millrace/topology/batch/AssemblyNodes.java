package dev.millrace.topology.batch;

/** Names of the nodes that take what the assembly gives off. */
public record AssemblyNodes(String batches, String outcomes, String deadLetters) {
}

/**
 * The Kafka Streams topology: rollouts and scores in, batches out, every rollout accounted for.
 *
 * <p>Guarantees:
 * <ol>
 *   <li><b>Exactly once.</b> Every rollout record ends once: in one batch, in one outcome, or as one dead letter; until
 *       then it is pending. A kill of any process at any moment does not change that.
 *   <li><b>Nothing stops it but its own failures.</b> Any bytes on a topic are either a record, or a dead letter with a
 *       reason.
 *   <li><b>Payloads are written once.</b> A rollout is copied into its trajectory, and into no changelog: state holds
 *       offsets, and waiting records are read again after a restart.
 *   <li><b>Decisions are data.</b> A record contains the inputs of its decision: the version it saw, the stages with
 *       their counts, the time by the records' own timestamps.
 *   <li><b>Order.</b> A task takes its partitions' records by timestamp. It continues without a partition only when the
 *       broker reports that the partition has no further records ({@code max_task_idle_ms = 0}).
 * </ol>
 *
 * <p>One decision per class, under thin processors: {@code ingress} (validation), {@code join} (rollouts and scores),
 * {@code batch} (groups and batches). The correction stages are in {@code dev.millrace.stages}, which the learner
 * shares.
 */
@NullMarked
package dev.millrace.topology;

import org.jspecify.annotations.NullMarked;

/**
 * The Kafka Streams topology: rollouts and scores in, batches out, every rollout accounted for.
 *
 * <p>What it promises:
 * <ol>
 *   <li><b>Exactly once.</b> Every rollout record ends once: in one batch, in one outcome, or as one dead letter;
 *       until then it is pending. Whatever is killed at whatever moment changes nothing of it.
 *   <li><b>Nothing stops it but its own failures.</b> Whatever bytes are on a topic, they are a record, or a dead
 *       letter with a reason.
 *   <li><b>Payloads are written once.</b> A rollout is copied into its trajectory, and into no changelog: state holds
 *       places on the log, and what waits is read again after a restart.
 *   <li><b>Decisions are data.</b> What a decision depends on is in the record it makes: the version it saw, the
 *       stages with their counts, the time by the records' own timestamps.
 *   <li><b>Order.</b> A task takes its partitions' records by timestamp, and knows from the broker that a partition
 *       has no more before it goes on without it ({@code max_task_idle_ms = 0}).
 * </ol>
 *
 * <p>One decision per class, under thin processors: {@code ingress} (is it what it claims to be), {@code join}
 * (rollout meets score), {@code batch} (groups and batches); what to correct for is in {@code dev.millrace.stages}, which
 * the learner shares.
 */
@NullMarked
package dev.millrace.topology;

import org.jspecify.annotations.NullMarked;

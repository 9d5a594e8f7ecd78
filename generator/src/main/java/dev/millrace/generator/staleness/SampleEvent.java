package dev.millrace.generator.staleness;

import dev.millrace.schemas.rollout.SampleName;
import java.util.List;

/** What a record of the log says about samples that admission may have released. */
sealed interface SampleEvent {

    /** A sample left without reaching a batch. */
    record Left(SampleName sample, String reason) implements SampleEvent {}

    /** A record of a sample was refused. */
    record Refused(SampleName sample, String reason) implements SampleEvent {}

    /** A record of a sample was refused because its generator is in quarantine: somebody else is to sample it. */
    record Quarantined(SampleName sample) implements SampleEvent {}

    /** A request was refused, so its samples never arrive. */
    record RequestRefused(String groupId, String reason) implements SampleEvent {}

    /** A refused record of a sample was put back on its topic. */
    record Redriven(SampleName sample) implements SampleEvent {}

    /** A refused request was put back. */
    record RequestRedriven(String groupId) implements SampleEvent {}

    /**
     * Samples reached a batch.
     *
     * @param hard prompts that are to be released once more when the batch is consumed
     */
    record Batched(long batchId, long offset, List<SampleName> samples, List<ResampleRequest> hard)
            implements SampleEvent {}

    /** A batch was consumed and made no version. */
    record Starved(long batchId) implements SampleEvent {}

    /** A record of this run that is about no sample by name. */
    record Nameless() implements SampleEvent {}
}

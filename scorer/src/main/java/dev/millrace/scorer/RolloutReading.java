package dev.millrace.scorer;

import dev.millrace.policy.session.RoutedExperts;
import dev.millrace.policy.session.SampledSupport;
import dev.millrace.policy.session.SequenceBatch;
import dev.millrace.schemas.Rollout;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** What became of a record on the rollouts topic. */
sealed interface RolloutReading {

    /**
     * A rollout that can be scored.
     *
     * @param kept what its tokens were drawn from, where policies are compared over that; else null
     * @param routing through which experts its tokens go, where that is the generator's choice; else null
     */
    record Scorable(
            Rollout rollout,
            int partition,
            long offset,
            int[] tokens,
            int promptLength,
            byte[] mask,
            float temperature,
            @Nullable SampledSupport kept,
            @Nullable RoutedExperts routing)
            implements RolloutReading {

        /** Some of them as the engine takes them. */
        static SequenceBatch batch(List<Scorable> rollouts) {
            return new SequenceBatch(
                    rollouts.stream().map(Scorable::tokens).toArray(int[][]::new),
                    rollouts.stream().mapToInt(Scorable::promptLength).toArray(),
                    rollouts.stream().map(Scorable::kept).toArray(SampledSupport[]::new));
        }

        /** The same, with the generator's routing where a rollout has it: of the policy that is trained, and of no other. */
        static SequenceBatch routed(List<Scorable> rollouts) {
            return batch(rollouts)
                    .routed(rollouts.stream().map(Scorable::routing).toArray(RoutedExperts[]::new));
        }

        /** One per rollout. */
        static float[] temperatures(List<Scorable> rollouts) {
            float[] temperatures = new float[rollouts.size()];
            for (int i = 0; i < temperatures.length; i++) {
                temperatures[i] = rollouts.get(i).temperature();
            }
            return temperatures;
        }

        int responseLength() {
            return mask.length;
        }
    }

    /** One that cannot; the topology dead-letters it, from the same record. */
    record Skipped(String reason, String message) implements RolloutReading {}
}

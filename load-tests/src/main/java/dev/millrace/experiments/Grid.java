package dev.millrace.experiments;

import java.util.ArrayList;
import java.util.List;

/** Runs seed after seed, so that an interrupted experiment has whole seeds. */
public record Grid(List<Integer> lags, List<Correction> corrections, List<Long> seeds, StalenessSettings settings) {
    public Grid {
        lags = List.copyOf(lags);
        corrections = List.copyOf(corrections);
        seeds = List.copyOf(seeds);
        lags.forEach(lag -> {
            if (lag < 0 || lag > settings.steps()) {
                throw new IllegalArgumentException("lags must be at least 0 and at most --steps=" + settings.steps()
                        + ", or a run would never see a rollout of its own: " + lag);
            }
        });
        if (!lags.contains(0)) {
            throw new IllegalArgumentException(
                    "lags must contain 0, the on-policy runs that all others are held against: " + lags);
        }
        refuseRepeated("lags", lags);
        refuseRepeated("corrections", corrections);
        refuseRepeated("seeds", seeds);
    }

    private static void refuseRepeated(String option, List<?> values) {
        if (values.isEmpty() || values.stream().distinct().count() < values.size()) {
            throw new IllegalArgumentException(option + " must name each value once: " + values);
        }
    }

    List<RunKey> runs() {
        List<RunKey> runs = new ArrayList<>();
        for (long seed : seeds) {
            for (int lag : lags) {
                for (Correction correction : corrections) {
                    runs.add(new RunKey(lag, correction, seed));
                }
            }
        }
        return runs;
    }

    public record RunKey(int lag, Correction correction, long seed) {

        String name() {
            return "lag-" + lag + "." + correction.key() + ".seed-" + seed;
        }
    }
}

package dev.millrace.audit.doctor;

import dev.millrace.audit.doctor.Finding.Weight;
import dev.millrace.audit.ledger.Tally;
import dev.millrace.schemas.ServerRole;
import dev.millrace.schemas.Serving;
import dev.millrace.schemas.TrainingStep;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Whether the run gets on: its steps, what waits, and who serves which version. */
final class ProgressRules {
    private static final long SILENT_MS = 60_000;
    private static final long STALLED_MS = 120_000;
    private static final long VERSIONS_BEHIND = 4;

    private ProgressRules() {}

    /** A run that has ended has nothing in flight that anybody waits for; one that hangs has. */
    static void progress(Examination examination, List<Finding> findings) {
        boolean alive = isAlive(examination);
        List<TrainingStep> steps = examination.steps();
        long lastMs =
                steps.isEmpty() ? Long.MIN_VALUE : steps.get(steps.size() - 1).getFinishedAtMs();
        if (alive && !steps.isEmpty() && examination.atMs() - lastMs > STALLED_MS) {
            findings.add(new Finding(
                    Weight.SICK,
                    "progress",
                    Finding.say(
                            "the last step, to version %d, was %,d s ago, and servers are up",
                            steps.get(steps.size() - 1).getVersion(), (examination.atMs() - lastMs) / 1000),
                    waitsWhere(examination.tally())));
        }
        if (alive) {
            examination.account().balance().oldestWaiting().stream()
                    .filter(waiting -> examination.atMs() - waiting.sinceMs() > STALLED_MS)
                    .forEach(waiting -> findings.add(new Finding(
                            Weight.WEAK,
                            "waiting",
                            Finding.say(
                                    "rollout %s has waited for %s for %,d s",
                                    waiting.rolloutId(),
                                    waiting.stage(),
                                    (examination.atMs() - waiting.sinceMs()) / 1000),
                            "millrace trace " + waiting.rolloutId())));
        }
        if (!examination.lags().isEmpty()) {
            findings.add(new Finding(
                    Weight.NOTE,
                    "lag",
                    "records behind: "
                            + examination.lags().entrySet().stream()
                                    .sorted(Map.Entry.comparingByKey())
                                    .map(e -> Finding.say("%s %,d", e.getKey(), e.getValue()))
                                    .reduce((a, b) -> a + ", " + b)
                                    .orElse(""),
                    ""));
        }
    }

    private static String waitsWhere(Tally all) {
        if (all.waitingForStep() > 0) {
            return "batches wait for the learner: is it up?";
        }
        if (all.waitingForBatch() > all.waitingForScore()) {
            return "scored rollouts wait for their group or batch: is the topology up, and are groups complete?";
        }
        return all.waitingForScore() > 0
                ? "rollouts wait for scores: is a scorer up?"
                : "nothing is in flight: is a generator up, and admission?";
    }

    /** A manifest behind a gap, which whoever reads versions passes over. */
    static void strayVersion(Examination examination, List<Finding> findings) {
        examination
                .strayVersion()
                .ifPresent(
                        stray -> findings.add(
                                new Finding(
                                        Weight.WEAK,
                                        "versions",
                                        Finding.say(
                                                "a manifest names version %d, and the run's chain ends with %s; it is passed over",
                                                stray,
                                                examination.newestVersion().isPresent()
                                                        ? "version "
                                                                + examination
                                                                        .newestVersion()
                                                                        .getAsLong()
                                                        : "no version"),
                                        "somebody else than the run's learner writes versions: stop whoever that is; a learner that runs deletes it")));
    }

    static void serving(Examination examination, List<Finding> findings) {
        long newest = examination.newestVersion().orElse(0);
        for (Serving server : examination.serving()) {
            long silentMs = examination.atMs() - server.getHeartbeatMs();
            if (server.getLeft()) {
                continue; // in order
            }
            if (silentMs > SILENT_MS) {
                if (isAlive(examination)) {
                    findings.add(new Finding(
                            Weight.WEAK,
                            "serving",
                            Finding.say(
                                    "%s %s was last heard of %,d s ago",
                                    lower(server), server.getServerId(), silentMs / 1000),
                            "if it is not meant to be down, start it again"));
                }
            } else if (server.getRole() != ServerRole.EVALUATOR // which stays with a version for as long as that takes
                    && newest - server.getVersion() > VERSIONS_BEHIND) {
                findings.add(new Finding(
                        Weight.SICK,
                        "serving",
                        Finding.say(
                                "%s %s serves version %d, the newest is %d",
                                lower(server), server.getServerId(), server.getVersion(), newest),
                        "what it makes is stale when it comes: look at its log, or give it fewer tokens at once"));
            }
        }
    }

    private static boolean isAlive(Examination examination) {
        return examination.serving().stream()
                .anyMatch(server -> !server.getLeft() && examination.atMs() - server.getHeartbeatMs() < SILENT_MS);
    }

    private static String lower(Serving server) {
        return server.getRole().name().toLowerCase(Locale.ROOT);
    }
}

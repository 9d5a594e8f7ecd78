package dev.millrace.chaos;

import dev.millrace.chaos.observe.LogWatch;
import dev.millrace.chaos.process.Operator;
import dev.millrace.chaos.process.Troupe;
import dev.millrace.log.LogConnection;
import java.util.Optional;

/** Does to a run that has lost records what its commands and alarms say, and nothing else. */
final class AdvisedOperator {
    private static final double BY_ITSELF_S = 30;
    private static final int MOST_COMMANDS = 5;

    private final Operator operator;
    private final Troupe troupe;
    private final LogWatch watch;
    private final LogConnection connection;

    AdvisedOperator(Scene scene, LogWatch watch, LogConnection connection) {
        this.operator = scene.operator();
        this.troupe = scene.troupe();
        this.watch = watch;
        this.connection = connection;
    }

    /** Waits whether the run continues by itself; where it does not, or something is left to repair, does what the commands advise. */
    FaultOutcome repaired(FaultCourse course) throws InterruptedException {
        LogWatch.Mark mark = watch.since(System.nanoTime());
        Optional<Double> run = course.awaitVersions(mark, BY_ITSELF_S);
        for (int commands = 0; commands < MOST_COMMANDS; commands++) {
            Optional<String> advice = advice(run.isPresent());
            if (advice.isEmpty() && run.isPresent()) {
                break;
            }
            advice.ifPresent(command -> enter(course, command));
            double left = mark.secondsTo(System.nanoTime()) > course.limitSeconds() ? 0 : BY_ITSELF_S;
            run = course.awaitVersions(advice.isPresent() ? watch.since(System.nanoTime()) : mark, left)
                    .map(seconds -> mark.secondsTo(System.nanoTime()));
        }
        return course.over(run);
    }

    /** What {@code repair} says is to be entered; where it names nothing and the run does not go on, what an alarm says. */
    private Optional<String> advice(boolean goesOn) {
        Operator.Said said = operator.enter(connection.command("repair"));
        Optional<String> ofRepair = said.status() == 0 ? Optional.empty() : said.advice();
        return ofRepair.isPresent() || goesOn
                ? ofRepair
                : troupe.alive().values().stream()
                        .flatMap(life -> operator.remedy(life).stream())
                        .findFirst();
    }

    /** Enters a command, and notes how it ended. */
    void enter(FaultCourse course, String command) {
        if (command.startsWith("millrace rollback") || command.contains(" new-epoch")) {
            troupe.newEpoch();
        }
        Operator.Said said = operator.enter(command);
        course.note("entered: "
                + command.replace(connection.command("").strip().replace("millrace  ", ""), "...")
                + (said.status() == 0 ? "" : ", which ended with status " + said.status() + ": " + said.lines()));
    }
}

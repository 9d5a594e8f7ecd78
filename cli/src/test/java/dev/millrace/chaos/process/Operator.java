package dev.millrace.chaos.process;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Follows a message as the run's operator would: runs its commands, each in a process of its own.
 *
 * <p>Owned by one thread.
 */
public final class Operator {
    private static final long LIMIT_S = 120;
    private static final Pattern COMMAND = Pattern.compile("millrace (?:repair|rollback|quarantine) .*");

    private static final Pattern ALARM = Pattern.compile("\\balarm [a-z-]+, [^:]+: ");

    private final Launcher launcher;
    private int entered;

    /**
     * What a command ended with.
     *
     * @param status its exit code
     * @param lines all it said
     */
    public record Said(int status, List<String> lines) {
        public Said {
            lines = List.copyOf(lines);
        }

        /** The first command that it names. */
        public Optional<String> advice() {
            return lines.stream()
                    .map(COMMAND::matcher)
                    .filter(Matcher::find)
                    .map(matcher -> matcher.group().strip())
                    .findFirst();
        }
    }

    public Operator(Launcher launcher) {
        this.launcher = launcher;
    }

    /** Enters a command as it stands in a message, {@code millrace ...}. */
    public Said enter(String command) {
        RoleProcess process = launcher.enter(
                "command-" + entered++, List.of(command.split(" ")).subList(1, command.split(" ").length));
        if (!process.awaitEnd(LIMIT_S)) {
            process.kill();
        }
        return new Said(process.exitStatus(), process.said());
    }

    /** A command that ends an alarm which stands in what a process has logged, and that does something; empty if there is none. */
    public Optional<String> remedy(RoleProcess process) {
        Map<String, String> standing = new LinkedHashMap<>();
        for (String line : process.logged()) {
            Matcher alarm = ALARM.matcher(line);
            if (alarm.find()) {
                if (line.contains(": over after ")) {
                    standing.remove(alarm.group());
                } else {
                    standing.put(alarm.group(), line);
                }
            }
        }
        return standing.values().stream()
                .map(COMMAND::matcher)
                .filter(Matcher::find)
                .map(matcher -> matcher.group().strip())
                .filter(command -> !command.startsWith("millrace repair") || command.contains("--do "))
                .findFirst();
    }

    /** Whether an alarm of this name stands, in what a process has logged. */
    public boolean isStanding(RoleProcess process, String name) {
        return last(process, "alarm " + name + ", ").isPresent();
    }

    /** The command that ends a standing alarm of this name about this subject, in what a process has logged; empty if none stands. */
    public Optional<String> remedy(RoleProcess process, String name, String subject) {
        return last(process, "alarm " + name + ", " + subject + ": ")
                .map(COMMAND::matcher)
                .filter(Matcher::find)
                .map(matcher -> matcher.group().strip());
    }

    private static Optional<String> last(RoleProcess process, String begun) {
        return process.logged().stream()
                .filter(line -> line.contains(begun))
                .reduce((first, second) -> second)
                .filter(line -> !line.contains(": over after "));
    }
}

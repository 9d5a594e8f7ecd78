package dev.millrace.chaos.process;

import dev.millrace.chaos.ChaosException;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Starts {@code millrace} in processes of their own, with the classes and the collector of this one; none outlives this one.
 *
 * @param mainClass whose main method is the command line
 * @param directory for what the processes log, and their state
 * @param common arguments of every process of the run, after its command
 * @param heapMegabytes most heap of each
 */
public record Launcher(String mainClass, Path directory, List<String> common, int heapMegabytes) {
    public Launcher {
        common = List.copyOf(common);
    }

    /**
     * Starts a process.
     *
     * @param life how many of this member came before
     * @param state of a topology: a folder below the directory
     * @param options of its JVM in addition to the usual ones
     * @param settings configuration keys of this life alone
     */
    RoleProcess start(RunMember member, int life, String state, List<String> options, List<String> settings) {
        List<String> arguments = new ArrayList<>(
                member.arguments(common, directory.resolve(state).toString()));
        settings.forEach(setting -> arguments.addAll(List.of("--set", setting)));
        return start(member.name() + "-" + life, options, arguments);
    }

    /** Starts a command that is no role of the run, with nothing but its own arguments. */
    RoleProcess enter(String name, List<String> arguments) {
        return start(name, List.of(), arguments);
    }

    private RoleProcess start(String name, List<String> options, List<String> arguments) {
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        ManagementFactory.getRuntimeMXBean().getInputArguments().stream()
                .filter(Launcher::isOfTheMachine)
                .forEach(command::add);
        Path logs = directory.resolve("logs");
        Path log = logs.resolve(name + ".log");
        command.addAll(List.of(
                "-Xmx" + heapMegabytes + "m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-Dmillrace.log=" + log));
        command.addAll(options);
        command.addAll(List.of(
                "-cp",
                System.getProperty("java.class.path"),
                RoleMain.class.getName(),
                Long.toString(ProcessHandle.current().pid()),
                mainClass));
        command.addAll(arguments);
        Path out = logs.resolve(name + ".out");
        try {
            Files.createDirectories(logs);
            ProcessBuilder builder =
                    new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile());
            builder.environment().putIfAbsent("ORT_DISABLE_TELEMETRY", "1");
            return new RoleProcess(name, builder.start(), out, log);
        } catch (IOException e) {
            throw new ChaosException(name + " did not start: " + e.getMessage(), e);
        }
    }

    /** A class archive and switches are the parent's; its heap, collector and agents are not. */
    private static boolean isOfTheMachine(String argument) {
        return argument.startsWith("-XX:SharedArchiveFile")
                || argument.startsWith("-Xlog:cds")
                || argument.startsWith("--");
    }
}

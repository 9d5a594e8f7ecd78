package dev.millrace.chaos.process;

import java.util.ArrayList;
import java.util.List;

/**
 * A process of the run.
 *
 * @param name of its own, such as {@code generator-1}
 * @param role what it does
 * @param settings configuration keys of its own, {@code key=value}
 */
public record RunMember(String name, Part role, List<String> settings) {

    public RunMember {
        settings = List.copyOf(settings);
    }

    /** The processes of a small run with two generators. */
    public static List<RunMember> ofRun() {
        return List.of(
                new RunMember("learner", Part.LEARNER, List.of()),
                new RunMember("admission", Part.ADMISSION, List.of()),
                new RunMember("topology", Part.TOPOLOGY, List.of()),
                new RunMember("scorer", Part.SCORER, List.of("scorer.id=scorer-0")),
                generator("generator-0"),
                generator("generator-1"));
    }

    /** A generator of this name. */
    public static RunMember generator(String name) {
        return new RunMember(name, Part.GENERATOR, List.of("generator.id=" + name));
    }

    /** Its command and the options that every process of the run is given, with what it says of itself. */
    List<String> arguments(List<String> common, String stateDirectory) {
        List<String> arguments = new ArrayList<>(List.of(role.command()));
        if (role == Part.TOPOLOGY) {
            arguments.addAll(List.of("--state-dir", stateDirectory));
        }
        arguments.addAll(common);
        settings.forEach(setting -> arguments.addAll(List.of("--set", setting)));
        return arguments;
    }
}

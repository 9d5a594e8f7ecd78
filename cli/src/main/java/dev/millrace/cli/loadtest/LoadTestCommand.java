package dev.millrace.cli.loadtest;

import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.ParameterException;
import picocli.CommandLine.Spec;

/** {@code millrace load-test}. */
@Command(name = "load-test", mixinStandardHelpOptions = true, description = "Measures lag against throughput.",
    subcommands = TopologyCommand.class)
public final class LoadTestCommand implements Runnable {
    @Spec
    private CommandSpec spec;

    @Override
    public void run() {
        throw new ParameterException(spec.commandLine(), "say what to measure: topology");
    }
}

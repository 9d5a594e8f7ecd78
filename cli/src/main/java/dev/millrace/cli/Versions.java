package dev.millrace.cli;

import java.util.Optional;
import picocli.CommandLine.IVersionProvider;

/** What {@code --version} prints: Millrace, the Java it runs on, and the platform. */
final class Versions implements IVersionProvider {
    @Override
    public String[] getVersion() {
        return new String[] {
            "Millrace "
                    + Optional.ofNullable(Main.class.getPackage().getImplementationVersion())
                            .orElse("(not packaged)"),
            "Java " + System.getProperty("java.version") + " (" + System.getProperty("java.vm.name") + ")",
            System.getProperty("os.name") + " " + System.getProperty("os.arch")
        };
    }
}

package dev.millrace.chaos.clock;

import com.sun.tools.attach.AgentInitializationException;
import com.sun.tools.attach.AgentLoadException;
import com.sun.tools.attach.AttachNotSupportedException;
import com.sun.tools.attach.VirtualMachine;
import dev.millrace.chaos.AgentJar;
import dev.millrace.chaos.ChaosException;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;

/** Sets the wall clock of another JVM of ours, which has the classes of this one. */
public final class ProcessClock {
    private final Path agent;

    /** @param directory for the agent's jar, which only names its class */
    public ProcessClock(Path directory) {
        this.agent = directory.resolve("clock-agent.jar");
    }

    /** Whether this Java can reach into another: the JDK's attach mechanism is there. */
    public static boolean isAvailable() {
        return ModuleLayer.boot().findModule("jdk.attach").isPresent();
    }

    /** Sets a process' clock to so much more or less than the right time. */
    public void set(long pid, Duration shift) {
        try {
            AgentJar.of(agent, "Agent-Class", ClockAgent.class);
            VirtualMachine machine = VirtualMachine.attach(Long.toString(pid));
            try {
                machine.loadAgent(agent.toString(), Long.toString(shift.toMillis()));
            } finally {
                machine.detach();
            }
        } catch (IOException | AttachNotSupportedException | AgentLoadException | AgentInitializationException e) {
            throw new ChaosException("the clock of process " + pid + " could not be set: " + e.getMessage(), e);
        }
    }
}

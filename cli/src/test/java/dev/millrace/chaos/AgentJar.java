package dev.millrace.chaos;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;

/** A jar that only names an agent's class, which is on the class path of every process that is started. */
public final class AgentJar {
    private AgentJar() {}

    /**
     * Written, where it is not there.
     *
     * @param attribute {@code Premain-Class} or {@code Agent-Class}
     */
    public static Path of(Path jar, String attribute, Class<?> agent) {
        if (Files.exists(jar)) {
            return jar;
        }
        Manifest manifest = new Manifest();
        Attributes main = manifest.getMainAttributes();
        main.put(Attributes.Name.MANIFEST_VERSION, "1.0");
        main.putValue(attribute, agent.getName());
        main.putValue("Can-Retransform-Classes", "true");
        try (OutputStream out = Files.newOutputStream(jar);
                JarOutputStream content = new JarOutputStream(out, manifest)) {
            content.finish();
            return jar;
        } catch (IOException e) {
            throw new ChaosException("an agent's jar could not be written: " + e.getMessage(), e);
        }
    }
}

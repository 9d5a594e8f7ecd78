package dev.millrace.chaos.halt;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.objectweb.asm.ClassReader;
import org.objectweb.asm.ClassVisitor;
import org.objectweb.asm.MethodVisitor;
import org.objectweb.asm.Opcodes;

@Timeout(300)
class HaltPointTest {
    @TempDir
    private Path directory;

    private static byte[] bytes(String type) throws IOException {
        try (InputStream in = HaltPointTest.class.getClassLoader().getResourceAsStream(type + ".class")) {
            assertThat(in).as(type).isNotNull();
            return in.readAllBytes();
        }
    }

    /** Calls in the methods of a point, in the order of the code. */
    private static List<String> told(ProtocolPoint point) throws IOException {
        List<String> told = new ArrayList<>();
        ClassVisitor methods = new ClassVisitor(Opcodes.ASM9) {
            @Override
            public @Nullable MethodVisitor visitMethod(
                    int access,
                    String name,
                    String descriptor,
                    @Nullable String signature,
                    String @Nullable [] exceptions) {
                return new MethodVisitor(Opcodes.ASM9) {
                    private final List<String> constants = new ArrayList<>();

                    @Override
                    public void visitLdcInsn(Object value) {
                        constants.add(value.toString());
                    }

                    @Override
                    public void visitMethodInsn(int code, String owner, String call, String type, boolean isInterface) {
                        if (call.equals("reached")) {
                            told.add(name + " "
                                    + String.join(" ", constants.subList(constants.size() - 2, constants.size())));
                        }
                    }
                };
            }
        };
        new ClassReader(HaltCalls.telling(bytes(point.type()), List.of(point))).accept(methods, 0);
        return told;
    }

    @ParameterizedTest
    @EnumSource(ProtocolPoint.class)
    void shouldTellBeforeAndAfterEachPointOfAProtocol(ProtocolPoint point) throws IOException {
        String call = point.method() + " ";
        assertThat(told(point))
                .contains(call + "BEFORE " + point.word(), call + "AFTER " + point.word())
                .allMatch(line -> line.startsWith(call) && line.endsWith(" " + point.word()));
    }

    private int run(HaltPoint.When when, ProtocolPoint point, int nth) throws Exception {
        List<String> command = new ArrayList<>(List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1"));
        command.addAll(HaltAgent.options(directory, when, point, nth));
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), CommitsTwice.class.getName()));
        return new ProcessBuilder(command).inheritIO().start().waitFor();
    }

    @Test
    void shouldEndAProcessAtItsPointAndNowhereElse() throws Exception {
        assertThat(run(HaltPoint.When.BEFORE, ProtocolPoint.COMMIT, 2)).isEqualTo(HaltPoint.STATUS);
        assertThat(run(HaltPoint.When.BEFORE, ProtocolPoint.COMMIT, 3)).isEqualTo(CommitsTwice.REFUSED_TWICE);
        assertThat(run(HaltPoint.When.AFTER, ProtocolPoint.COMMIT, 1))
                .as("a commit that is refused has not happened")
                .isEqualTo(CommitsTwice.REFUSED_TWICE);
    }
}

package assembly

import (
	"bytes"
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestEncodedInstructionsAreWhatADisassemblerReads(t *testing.T) {
	disassembler, err := exec.LookPath("aarch64-linux-gnu-objdump")
	if err != nil {
		t.Skip("the words of NEON's instructions are not compared with a disassembler's reading, because aarch64-linux-gnu-objdump is not on the PATH; on Debian it comes with: apt-get install binutils-aarch64-linux-gnu")
	}
	var words bytes.Buffer
	var want []string
	written := map[encoded]bool{}
	for _, f := range functions(neon) {
		for _, i := range f.instructions {
			if i.op != "WORD" || written[i.operands[0].(encoded)] {
				continue
			}
			word := i.operands[0].(encoded)
			written[word] = true
			want = append(want, i.comment)
			words.Write(binary.LittleEndian.AppendUint32(nil, uint32(word)))
		}
	}
	file := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(file, words.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), disassembler, "-D", "-b", "binary", "-m", "aarch64", file).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var got []string
	for line := range strings.Lines(string(out)) {
		// An address, the word, the operation and its operands, between tabs.
		if fields := strings.Split(strings.TrimSpace(line), "\t"); len(fields) == 4 {
			got = append(got, fields[2]+" "+fields[3])
		}
	}
	if len(want) < 100 || len(got) != len(want) {
		t.Fatalf("%d instructions, of which the disassembler reads %d", len(want), len(got))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%q is encoded as %q", want[i], got[i])
		}
	}
}

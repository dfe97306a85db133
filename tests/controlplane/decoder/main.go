// Reads files as kubectl does, one a line of JSON (base64), and answers with the values of their documents and the objects.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/cli-runtime/pkg/resource"
)

type answer struct {
	Values  []any  `json:"values"`  // of the documents before an error
	Objects []any  `json:"objects"` // that kubectl would send
	Error   string `json:"error,omitempty"`
}

func main() {
	directory, err := os.MkdirTemp("", "decoder")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(directory)
	lines := bufio.NewReader(os.Stdin)
	answers := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(answers)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var data []byte
		if err := json.Unmarshal(line, &data); err != nil {
			log.Fatal(err)
		}
		read := answer{Values: []any{}, Objects: []any{}}
		if err := values(data, &read); err != nil {
			read.Error = err.Error()
		}
		if err := objects(data, filepath.Join(directory, "file.yaml"), &read); err != nil {
			log.Fatal(err)
		}
		if err := encoder.Encode(read); err != nil {
			log.Fatal(err)
		}
		answers.Flush()
	}
}

// values is resource.StreamVisitor's loop, behind resource.FileVisitor's reader, with the numbers of kubectl's objects.
func values(data []byte, read *answer) error {
	bom := unicode.BOMOverride(unicode.UTF8.NewDecoder())
	decoder := yaml.NewYAMLOrJSONDecoder(transform.NewReader(bytes.NewReader(data), bom), 4096)
	for {
		extension := runtime.RawExtension{}
		if err := decoder.Decode(&extension); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		raw := bytes.TrimSpace(extension.Raw)
		if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
			continue
		}
		var value any
		if err := utiljson.Unmarshal(raw, &value); err != nil {
			return err
		}
		read.Values = append(read.Values, value)
	}
}

// objects is what `kubectl apply -f` takes from a file: with its errors left out, since `values` reports them.
func objects(data []byte, path string, read *answer) error {
	if err := os.WriteFile(path, data, 0o600); err != nil {
		return err
	}
	infos, _ := resource.NewLocalBuilder().Unstructured().ContinueOnError().
		FilenameParam(false, &resource.FilenameOptions{Filenames: []string{path}}).
		Flatten().Do().Infos()
	for _, info := range infos {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			read.Objects = append(read.Objects, object.Object)
		}
	}
	return nil
}

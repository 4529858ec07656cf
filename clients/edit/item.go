package edit

import "slices"

// HasItem reports whether the list at path contains text. It returns the same errors as Format.Get.
func (f JSON) HasItem(data []byte, path []string, text string) (bool, error) {
	got, err := f.Get(data, path)
	list, _ := got.([]any)
	return slices.Contains(list, any(text)), err
}

// PutItem returns data with text at the end of the list at path. It creates the list if necessary. If the list already
// contains text, nothing changes. It returns the same errors as Format.Put.
func (f JSON) PutItem(data []byte, path []string, text string) ([]byte, error) {
	if has, err := f.HasItem(data, path, text); err != nil || has {
		return data, err
	}
	return f.edit(data, func(d *document, root map[string]any) error {
		last := len(path) - 1
		parent, ok := within(root, path[:last])
		if !ok {
			return ErrByHand
		}
		list, ok := parent[path[last]].([]any)
		if !ok && parent[path[last]] != nil {
			return d.unlike("a JSON array", path...)
		}
		parent[path[last]] = append(list, text)
		return nil
	})
}

// CutItem returns data with text removed from the list at path. It also removes the list and its parents if they would
// become empty. It returns the same errors as Format.Put.
func (f JSON) CutItem(data []byte, path []string, text string) ([]byte, error) {
	return f.edit(data, func(d *document, root map[string]any) error {
		if _, err := d.find(path...); err != nil {
			return err
		}
		list, _ := descend(root, path).([]any)
		if i := slices.Index(list, any(text)); i >= 0 {
			list[i] = gone{}
		}
		return nil
	})
}
